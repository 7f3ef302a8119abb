"""The bundle that a run was made with, kept in its folder for whoever opens a copy. Knows no run and no rubric."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from vera_local.bundle import Bundle
from vera_local.bundle.source import Source
from vera_local.bundle.suite_file import SELFTEST
from vera_local.errors import UserError

FOLDER = "bundle"

OFFICIAL = "vera-mh-"
"""How the name of an official bundle begins; what follows is that of its folder, which its files tell from no other."""


def keep(folder: Path, bundle: Bundle) -> None:
    """Write the bundle's files into the folder of a run, all at once, where they are not there yet.

    UserError where that is not possible.
    """
    if (folder / FOLDER).exists():
        return
    for left in folder.glob(f".{FOLDER}.*"):
        shutil.rmtree(left, ignore_errors=True)
    try:
        part = Path(tempfile.mkdtemp(dir=folder, prefix=f".{FOLDER}."))
        for name, data in _files(bundle).items():
            file = part / _place(bundle.name) / name
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.write_bytes(data)
            file.chmod(0o600)
        part.rename(folder / FOLDER)
    except OSError as error:
        raise UserError(
            f"{folder / FOLDER}: the bundle cannot be kept there ({error.strerror}); see to it and try again"
        ) from None


def _files(bundle: Bundle) -> dict[str, bytes]:
    selftest = None if bundle.folder is None else bundle.folder / SELFTEST
    return bundle.files | (
        {SELFTEST: Source.read(selftest).data} if selftest is not None and selftest.is_file() else {}
    )


def _place(name: str) -> str:
    """The folder for a bundle of that name, which can be any words where it is none of an official one."""
    told = name.removeprefix(OFFICIAL)
    return told if re.fullmatch(r"\w[\w.-]{,80}", told) else "files"


def kept(folder: Path, name: str) -> Path | None:
    """Where the run in `folder` keeps its bundle of that name; None where it keeps none."""
    place = folder / FOLDER / _place(name)
    return place if place.is_dir() else None
