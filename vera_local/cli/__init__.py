"""The command line. Turns errors that a user can cause into one sentence and an exit code."""

from __future__ import annotations

import os
import sys

from vera_local.cli.private import keep_private
from vera_local.engine import guard
from vera_local.engine.offline import go_offline

INTERRUPTED = 130
"""The exit code that shells expect after Ctrl-C."""


def main() -> None:
    """Run a command.

    Exit codes: 0 done, 1 an engine or the chatbot failed, 2 wrong input or surroundings, 130 interrupted.
    """
    go_offline()
    guard.install()
    keep_private()
    try:
        sys.exit(_checked(_command()))
    except KeyboardInterrupt:
        # Before a run has its own way to stop: nothing was begun.
        os.write(2, b"vera-local: Stopped before anything was begun.\n")
        os._exit(INTERRUPTED)


def _command() -> int:
    import typer

    from vera_local.cli.app import app
    from vera_local.cli.interrupt import Interrupted, leave
    from vera_local.engine.seam import EngineError
    from vera_local.errors import UserError

    try:
        return int(app(standalone_mode=False) or 0)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except UserError as error:
        return _told(str(error), 2)
    except EngineError as error:
        return _told(f"{error}; what was finished is kept, and the same command goes on from there", 1)
    except Interrupted as farewell:
        leave(str(farewell))
    except OSError as error:
        return _told(f"{error.strerror or error}: the output cannot be written; what was finished is kept", 2)
    except typer.exceptions.TyperException as error:
        # It names the option. Without a command typer has printed its help and has nothing to add.
        told = error.format_message().rstrip(".")
        return _told(f"{told}; see vera-local --help", 2) if told else 2


def _checked(code: int) -> int:
    """The exit code of a command, which is no success where something of it was refused."""
    refused = [attempt for attempt in guard.left() if attempt.verdict == "refused"]
    if code or not refused:
        return code
    return _told(f"something beyond this machine was asked for: {refused[0].told()}", 1)


def _told(sentence: str, code: int) -> int:
    """One line on standard error, of what a server or a file said, too."""
    # Heavy, and loaded by now.
    from vera_local.report.reading import harmless

    print(f"vera-local: {harmless(sentence)}", file=sys.stderr, flush=True)
    return code
