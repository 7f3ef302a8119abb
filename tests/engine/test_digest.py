from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vera_local.engine.digest import model_digests


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VERA_LOCAL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_bytes(b"{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "README.md").write_bytes(b"not part of the model")
    return folder


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []
    real: Callable[..., object] = hashlib.file_digest

    def counted(file: object, name: str) -> object:
        seen.append(Path(file.name).name)  # type: ignore[attr-defined]
        return real(file, name)

    monkeypatch.setattr(hashlib, "file_digest", counted)
    return seen


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_every_model_file_has_its_sha256(model: Path) -> None:
    assert model_digests(model) == {"config.json": sha(b"{}"), "model.safetensors": sha(b"weights")}


def test_a_file_is_read_once(model: Path, reads: list[str]) -> None:
    first = model_digests(model)

    assert model_digests(model) == first
    assert sorted(reads) == ["config.json", "model.safetensors"]


def test_a_file_that_changed_is_read_again(model: Path, reads: list[str]) -> None:
    model_digests(model)
    (model / "model.safetensors").write_bytes(b"weightz")
    os.utime(model / "model.safetensors", ns=(1, 1))

    assert model_digests(model)["model.safetensors"] == sha(b"weightz")
    assert reads.count("config.json") == 1


def test_a_file_put_in_anothers_place_is_read_again(model: Path) -> None:
    weights = model / "model.safetensors"
    os.utime(weights, ns=(1, 1))
    model_digests(model)
    (model / "new").write_bytes(b"WEIGHTS")
    os.utime(model / "new", ns=(1, 1))
    (model / "new").replace(weights)

    assert model_digests(model)["model.safetensors"] == sha(b"WEIGHTS")


def test_a_file_changed_in_place_with_its_time_set_back_is_read_again(model: Path) -> None:
    weights = model / "model.safetensors"
    before = weights.stat()
    model_digests(model)
    weights.write_bytes(b"WEIGHTS")
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert (weights.stat().st_size, weights.stat().st_ino) == (before.st_size, before.st_ino)
    assert model_digests(model)["model.safetensors"] == sha(b"WEIGHTS")


def test_code_and_tokenizers_of_any_kind_count(model: Path) -> None:
    (model / "own.py").write_bytes(b"code")
    (model / "qwen.tiktoken").write_bytes(b"words")

    assert model_digests(model).keys() >= {"own.py", "qwen.tiktoken"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(
    broken=st.binary(max_size=40)
    | st.sampled_from([b"[]", b"{}", b"1", b'{"a": 1}', b'{"a": {"stamp": 1, "sha256": ""}}', b'{"a": {"stamp": []}}'])
)
def test_a_broken_cache_is_ignored(model: Path, broken: bytes) -> None:
    store = model.parent / "cache" / "digests.json"
    store.parent.mkdir(exist_ok=True)
    store.write_bytes(broken)

    assert model_digests(model)["config.json"] == sha(b"{}")


def test_a_cache_that_cannot_be_written_does_not_stop_a_run(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (model.parent / "file").write_bytes(b"")
    monkeypatch.setenv("VERA_LOCAL_CACHE", str(model.parent / "file"))

    assert model_digests(model)["config.json"] == sha(b"{}")


def test_nothing_but_the_cache_is_left_behind(model: Path) -> None:
    model_digests(model)

    assert [path.name for path in (model.parent / "cache").iterdir()] == ["digests.json"]
