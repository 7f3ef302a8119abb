"""A local, offline evaluator of chatbot safety in mental-health conversations. Knows only its own version."""

from __future__ import annotations

import os
from importlib.metadata import version

if "VERA_LOCAL_GUARD" in os.environ:
    # A process that a run of ours started: Python loads the run's main module in it before vLLM, so that not even an
    # import there is without the guard.
    from vera_local.engine.guard import install_if_told

    install_if_told()

__version__ = version("vera-local")
