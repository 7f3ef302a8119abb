from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from vera_local.engine.verify import verify


@pytest.fixture
def folder(tiny_model_folder: Path, tmp_path: Path) -> Path:
    model = tmp_path / "model"
    model.mkdir()
    for file in tiny_model_folder.iterdir():
        (model / file.name).write_bytes(file.read_bytes())
    return model


def test_whole_files_have_no_fault(folder: Path) -> None:
    found = verify(folder)

    weights = (folder / "model.safetensors").read_bytes()
    assert found.faults == ()
    assert found.digests["model.safetensors"] == hashlib.sha256(weights).hexdigest()
    assert verify(folder, found.digests).faults == ()


def test_one_bit_is_found_whatever_the_times_say(folder: Path) -> None:
    before = verify(folder).digests
    weights = folder / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))

    (fault,) = verify(folder, before).faults
    assert fault.startswith("model.safetensors has other content")


def test_files_that_came_or_went_are_found(folder: Path) -> None:
    before = verify(folder).digests
    (folder / "own.py").write_text("code", encoding="utf-8")
    (folder / "tokenizer_config.json").unlink()

    assert verify(folder, before).faults == ("own.py was not there", "tokenizer_config.json is gone")


@pytest.mark.parametrize("size", [0, 4, 8, 100, -1])
def test_weights_that_were_cut_off_are_found_without_a_record(folder: Path, size: int) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:size])

    assert verify(folder).faults == ("model.safetensors is no whole safetensors file; fetch it again",)


@pytest.mark.parametrize(
    "header", [b"[]", b"{}", b"no", b"[" * 100_000, b'{"a": 1}', b'{"a": {"data_offsets": []}}', b"\xff"]
)
def test_a_header_that_says_anything_else_is_a_fault(folder: Path, header: bytes) -> None:
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)

    assert verify(folder).faults


def test_a_tensor_that_no_file_holds_is_found(folder: Path) -> None:
    index = {"weight_map": {"lost.weight": "model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")

    (fault,) = verify(folder).faults
    assert fault == "model.safetensors lacks lost.weight, which the index promises"


def test_a_hub_cache_s_own_digests_are_held_to(folder: Path, tmp_path: Path) -> None:
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    for name in ("model.safetensors", "config.json"):
        data = (folder / name).read_bytes()
        large, small = hashlib.sha256(data), hashlib.sha1(b"blob %d\0" % len(data) + data)
        blob = blobs / (large if name.endswith(".safetensors") else small).hexdigest()
        (folder / name).rename(blob)
        (folder / name).symlink_to(blob)
    assert verify(folder).faults == ()

    for name in ("model.safetensors", "config.json"):
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(
            data.replace(b"2048", b"2049") if name == "config.json" else data[:-1] + bytes([data[-1] ^ 1])
        )

    assert [fault.partition(" is ")[0] for fault in verify(folder).faults] == ["config.json", "model.safetensors"]
