"""The one error a user can cause. Knows nothing of what went wrong, only how it is told."""


class UserError(Exception):
    """Wrong input or surroundings, told in one sentence that names the place and the remedy.

    The command line prints it without a traceback and exits with code 2.
    """
