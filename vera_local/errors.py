"""The one error a user can cause, and how those of other libraries are told. Knows nothing of what went wrong."""


class UserError(Exception):
    """Wrong input or surroundings, told in one sentence that names the place and the remedy.

    The command line prints it without a traceback and exits with code 2.
    """


def first_line(error: BaseException) -> str:
    """The first line of what another library raised, at most 200 characters; its kind where it says nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]
