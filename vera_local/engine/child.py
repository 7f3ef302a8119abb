"""What runs inside every process that vLLM starts. Knows no model and no request.

vLLM loads entry points of the group `vllm.general_plugins` in the hosting process, in its engine core and in each
worker. `register` makes the latter two die with their parent, so that even kill -9 of a run leaves no process that
holds the GPU's memory, and sees that all are guarded as the run is.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys

from vera_local.engine.guard import install_if_told

HOST_VARIABLE = "VERA_LOCAL_HOST"
"""Holds the process id of the hosting run. Unset, the plugin does nothing: other users of vLLM are left alone."""

PLUGIN = "vera_local"
"""What the entry point is called."""

_PR_SET_PDEATHSIG = 1
_CHOICE = "VLLM_PLUGINS"


def be_loaded() -> None:
    """Add our plugin to the ones that the user has chosen for vLLM, if so: a choice leaves out all others."""
    chosen = os.environ.get(_CHOICE)
    if chosen is not None and PLUGIN not in chosen.split(","):
        os.environ[_CHOICE] = f"{chosen},{PLUGIN}"


def register() -> None:
    """Guard this process and tie it to its parent, if a run of ours is at the root of it."""
    install_if_told()
    host = os.environ.get(HOST_VARIABLE)
    if host is None or host == str(os.getpid()) or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid != os.getppid():
        # The parent ended before the signal was armed: nobody is left who wants this process.
        os._exit(1)
