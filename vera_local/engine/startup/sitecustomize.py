"""Guards a Python that a guarded process started, before anything else in it. Knows only which package does that.

Python imports the first module of this name that it finds when it starts, so the next one is run from here.
"""

from __future__ import annotations

import contextlib
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

# Another Python may not have the package; what that one runs is a program like any other. Nothing of it is used here
# (F401): a package that is imported in a guarded process guards it.
with contextlib.suppress(ImportError):
    import vera_local  # noqa: F401


def _run_next() -> None:
    """Run the `sitecustomize` that this one stands before, if there is one."""
    own = Path(__file__).parent
    spec = PathFinder.find_spec("sitecustomize", [folder for folder in sys.path if Path(folder).absolute() != own])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


_run_next()
