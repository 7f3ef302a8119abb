"""The runs in a folder, each under a name that can stand in an address. Opens no store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from vera_local.errors import UserError
from vera_local.report.html.text import visible
from vera_local.run.evaluate import must_hold_run
from vera_local.run.folder import MANIFEST
from vera_local.run.viewed import Viewed


class Shelf:
    """A run, or a folder with runs in it."""

    def __init__(self, root: Path) -> None:
        """UserError where there is no such folder, or no run in it."""
        self._root = root
        self._open: dict[Path, tuple[Any, Viewed]] = {}
        try:
            found = self.runs()
        except OSError as error:
            raise UserError(
                f"{root}: cannot be read ({error.strerror}); name the folder of a run, or of runs"
            ) from None
        if not found:
            raise UserError(f"{root} holds no run and no folder with one; make one with `vera-local run`")
        if self.single:
            must_hold_run(root)

    @property
    def single(self) -> str | None:
        """The name of the run, where it is one run that is shown; None where it is a folder of runs."""
        return visible(self._root.resolve().name) if (self._root / MANIFEST).is_file() else None

    def runs(self) -> dict[str, Path]:
        """Name -> folder, by name; OSError where the folder cannot be read."""
        if self.single is not None:
            return {self.single: self._root}
        with os.scandir(self._root) as entries:
            folders = sorted(Path(entry.path) for entry in entries if entry.is_dir())
        return {visible(folder.name): folder for folder in folders if (folder / MANIFEST).is_file()}

    def folder(self, name: str) -> Path:
        """KeyError where there is no run of this name; never a folder elsewhere."""
        return self.runs()[name]

    def run(self, name: str) -> Viewed:
        """A run with its bundle, read again where its manifest has changed; raises as `folder` and `Viewed.open`."""
        folder = self.folder(name)
        status = (folder / MANIFEST).stat()
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        known = self._open.get(folder)
        if known is None or known[0] != stamp:
            known = self._open[folder] = (stamp, Viewed.open(folder))
        return known[1]
