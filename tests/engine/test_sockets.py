"""The folder of vLLM's sockets is its owner's alone, whatever lay in its place."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from vera_local.engine.sockets import PREFIX, make_sockets_folder, remove_sockets_folder
from vera_local.errors import UserError


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"{PREFIX}{os.getpid()}"


@pytest.mark.parametrize("there", [False, True])
def test_it_is_for_its_owner_alone_and_gone_with_the_run(place: Path, there: bool) -> None:
    if there:
        place.mkdir(mode=0o777)
        place.chmod(0o777)
    assert make_sockets_folder() == place
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    remove_sockets_folder()
    assert not place.exists()


@pytest.mark.parametrize("there", [False, True])
def test_a_link_in_its_place_is_not_followed(place: Path, tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / "elsewhere").mkdir()
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="another user's; set TMPDIR"):
        make_sockets_folder()


def test_a_folder_of_another_user_is_not_used(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.mkdir()
    monkeypatch.setattr(os, "getuid", lambda: place.stat().st_uid + 1)
    with pytest.raises(UserError, match="another user's; set TMPDIR"):
        make_sockets_folder()


def test_those_of_processes_that_are_gone_are_cleared_away(place: Path) -> None:
    old = place.with_name(f"{PREFIX}999999999")
    old.mkdir()
    make_sockets_folder()
    assert not old.exists()
