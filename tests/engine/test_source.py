from __future__ import annotations

from pathlib import Path

import pytest

from vera_local.engine.profile import Profile, Source, find_profile
from vera_local.engine.source import locate
from vera_local.errors import UserError

REPO = "models--Qwen--Qwen3-8B"


@pytest.fixture
def profile() -> Profile:
    return find_profile("qwen3-8b")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    return tmp_path


def snapshot(hub: Path, revision: str) -> Path:
    folder = hub / REPO / "snapshots" / revision
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def main_is(hub: Path, revision: str) -> None:
    (hub / REPO / "refs").mkdir(parents=True)
    (hub / REPO / "refs" / "main").write_text(revision, encoding="utf-8")


def refusal(profile: Profile) -> str:
    with pytest.raises(UserError) as caught:
        locate(profile)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_main_chooses_among_snapshots(profile: Profile, hub: Path) -> None:
    snapshot(hub, "aaa")
    chosen = snapshot(hub, "bbb")
    main_is(hub, "bbb\n")

    assert locate(profile) == chosen


def test_the_only_snapshot_is_taken(profile: Profile, hub: Path) -> None:
    only = snapshot(hub, "aaa")

    assert locate(profile) == only


def test_several_snapshots_without_main_are_not_guessed_between(profile: Profile, hub: Path) -> None:
    snapshot(hub, "aaa")
    snapshot(hub, "bbb")

    assert "several snapshots" in refusal(profile)


def test_a_missing_snapshot_is_told_with_the_command_that_fetches_it(profile: Profile, hub: Path) -> None:
    told = refusal(profile)

    assert "`hf download Qwen/Qwen3-8B`" in told
    assert str(hub) in told
    assert "path" in told


def test_a_main_that_names_an_absent_snapshot_counts_as_missing(profile: Profile, hub: Path) -> None:
    snapshot(hub, "aaa")
    main_is(hub, "bbb")

    assert "hf download" in refusal(profile)


def test_a_broken_download_is_refused(profile: Profile, hub: Path) -> None:
    folder = snapshot(hub, "aaa")
    (folder / "model.safetensors").unlink()

    assert "safetensors" in refusal(profile)


@pytest.mark.parametrize(
    ("variable", "below"),
    [("HF_HOME", "hub"), ("XDG_CACHE_HOME", "huggingface/hub"), ("HOME", ".cache/huggingface/hub")],
)
def test_the_cache_is_found_as_the_hub_tools_find_it(
    profile: Profile, hub: Path, monkeypatch: pytest.MonkeyPatch, variable: str, below: str
) -> None:
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.setenv(variable, str(hub))

    only = snapshot(hub / below, "aaa")

    assert locate(profile) == only


def test_a_folder_is_given_back_absolute(profile: Profile, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "model.safetensors").write_bytes(b"weights")

    assert locate(with_path(profile, tmp_path)) == tmp_path


def test_a_missing_folder_is_refused(profile: Profile, tmp_path: Path) -> None:
    assert str(tmp_path / "gone") in refusal(with_path(profile, tmp_path / "gone"))


def test_a_folder_without_config_is_refused(profile: Profile, tmp_path: Path) -> None:
    assert "config.json" in refusal(with_path(profile, tmp_path))


def with_path(profile: Profile, folder: Path) -> Profile:
    return profile.model_copy(update={"source": Source(path=str(folder))})
