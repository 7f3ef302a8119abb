"""The folder for what can be made again. Knows nothing of what is put there."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The absolute cache folder, which may not exist yet: VERA_LOCAL_CACHE, else vera_local in the user's cache."""
    own = os.environ.get("VERA_LOCAL_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(shared).expanduser().absolute() / "vera_local"
