"""The command line. Turns errors that a user can cause into one sentence and an exit code."""

from __future__ import annotations

import os
import sys

from vera_local.engine.offline import go_offline


def main() -> None:
    """Run a command. Exit codes: 0 done, 1 an engine failed, 2 wrong input or surroundings, 130 interrupted."""
    go_offline()
    os.umask(0o077)
    from vera_local.cli.app import app
    from vera_local.cli.interrupt import Interrupted, leave
    from vera_local.engine.seam import EngineError
    from vera_local.errors import UserError

    try:
        app()
    except UserError as error:
        _end(str(error), 2)
    except EngineError as error:
        _end(f"{error}; what was finished is kept, and the same command goes on from there", 1)
    except Interrupted as farewell:
        leave(str(farewell))


def _end(sentence: str, code: int) -> None:
    print(f"vera-local: {sentence}", file=sys.stderr, flush=True)
    sys.exit(code)
