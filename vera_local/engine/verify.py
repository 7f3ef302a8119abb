"""Whether a model's files are what they were, or at least whole. Knows no run; reads every byte, trusts no cache."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vera_local.engine.digest import fresh_digests, model_files
from vera_local.engine.folder import weight_files
from vera_local.engine.json_file import LARGEST, read_object

_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Verified:
    """`digests`: file name -> sha256 as it is now; `faults`: what is wrong, each as a sentence."""

    digests: Mapping[str, str]
    faults: tuple[str, ...]


def verify(folder: Path, expected: Mapping[str, str] | None = None) -> Verified:
    """Hash a model's files anew; find weights that are not whole, and what differs from the `expected` digests.

    In a hub cache each file is also held against the digest that the hub gave it. Raises UserError where a weight file
    is missing or the folder's own index cannot be read.
    """
    digests = fresh_digests(folder)
    faults = [*_differences(digests, expected or digests), *_torn(folder), *_other_blobs(folder, digests)]
    return Verified(digests, tuple(faults))


def _differences(digests: Mapping[str, str], expected: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(digests.keys() | expected.keys()):
        if name not in digests:
            yield f"{name} is gone"
        elif name not in expected:
            yield f"{name} was not there"
        elif digests[name] != expected[name]:
            yield f"{name} has other content: sha256 {digests[name]}, and it was {expected[name]}"


def _torn(folder: Path) -> Iterator[str]:
    """Weight files that end too early or too late, and tensors that the index promises and no file holds."""
    held: dict[str, set[str]] = {}
    for path in weight_files(folder):
        header = _header(path)
        if header is None:
            yield f"{path.name} is no whole safetensors file; fetch it again"
        else:
            held[path.name] = header.keys() - {"__metadata__"}
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        wanted = read_object(index)["weight_map"]
        missing = sorted(name for name, file in wanted.items() if file in held and name not in held[file])
        if missing:
            yield f"{wanted[missing[0]]} lacks {missing[0]}, which the index promises"


def _header(path: Path) -> dict[str, Any] | None:
    """The names, types and places of the tensors in a file; None where the file is not as long as they say."""
    size = path.stat().st_size
    with path.open("rb") as file:
        beginning = file.read(8)
        length = struct.unpack("<Q", beginning)[0] if len(beginning) == 8 else LARGEST + 1
        if length > min(size - 8, LARGEST):
            return None
        text = file.read(length)
    try:
        header = json.loads(text)
        ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        whole = bool(ends) and 8 + length + max(ends) == size
    except (ValueError, RecursionError, AttributeError, LookupError, TypeError):
        return None
    return header if whole else None


def _other_blobs(folder: Path, digests: Mapping[str, str]) -> Iterator[str]:
    """Files of a hub cache, where a file's name is its digest, that are not what they were when they were fetched."""
    for path in model_files(folder):
        blob = path.resolve().name
        if path.is_symlink() and _BLOB.fullmatch(blob) and blob != _as_hub(path, blob, digests[path.name]):
            yield f"{path.name} is not what the hub gave: its digest there is {blob}"


def _as_hub(path: Path, blob: str, sha256: str) -> str:
    """The digest as the hub makes it: sha256 of large files, git's own of small ones."""
    if len(blob) == 64:
        return sha256
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
