"""What processes and GPUs take is read from where this machine tells it, or not at all."""

from __future__ import annotations

import mmap
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from vera_local.run import memory as module
from vera_local.run.memory import Peak, gpu_bytes, tree_bytes

STATUS = "Name:\tpython: 3\nPPid:\t{parent}\nVmHWM:\t{peak} kB\nVmRSS:\t1 kB\n"


def status(proc: Path, pid: int, text: str) -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "status").write_text(text, encoding="utf-8")


def test_the_family_of_a_process_is_added_up(tmp_path: Path) -> None:
    for pid, parent, peak in [(1, 0, 1000), (7, 1, 10), (9, 7, 20), (8, 9, 40), (11, 1, 2000)]:
        status(tmp_path, pid, STATUS.format(parent=parent, peak=peak))
    status(tmp_path, 12, "Name:\tended\nPPid:\t7\n")
    (tmp_path / "13").mkdir()
    assert tree_bytes(tmp_path, 7) == 70 * 1024


def test_nobody_knows_where_there_is_no_proc(tmp_path: Path) -> None:
    assert tree_bytes(tmp_path) is None
    assert tree_bytes(tmp_path / "none") is None


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc here")
def test_a_child_counts_and_so_does_memory_that_was_given_back() -> None:
    size = 50_000_000
    with mmap.mmap(-1, size) as taken:
        taken.write(b"x" * size)
    before = tree_bytes()
    hold = f"x = b'x' * {size}; print(flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    with_child = tree_bytes()
    child.communicate(b"\n")
    assert before is not None and with_child is not None
    assert before > size
    assert with_child - before > size


def smi(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize(("seen", "used"), [(None, 300), ("1", 200), ("GPU-a", 100), ("0,1", 300), ("", None)])
def test_what_is_in_use_on_visible_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: str | None, used: int | None
) -> None:
    smi(tmp_path, monkeypatch, "echo '0, GPU-aa, 100'; echo '1, GPU-bb, 200'")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if seen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
    assert gpu_bytes() == (None if used is None else used * 2**20)


@pytest.mark.parametrize("script", ["exit 9", "echo '0, GPU-aa, [N/A]'"])
def test_nobody_knows_where_nvidia_smi_does_not_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    smi(tmp_path, monkeypatch, script)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpu_bytes() is None


def test_a_machine_without_nvidia_smi_is_not_asked_for_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(module, "gpu_bytes", lambda: pytest.fail("asked"))
    peak = Peak.here()
    with peak.watched():
        pass
    assert peak.gpu is None


def test_the_largest_of_all_looks_is_kept_and_no_thread_outlives_the_watch() -> None:
    sizes = iter([3, 9, 4, None, 5])
    peak = Peak(lambda: next(sizes), lambda: None)
    threads = threading.active_count()
    with peak.watched(), peak.watched():
        assert threading.active_count() == threads + 1
    assert threading.active_count() == threads
    with peak.watched():
        pass
    assert (peak.memory, peak.gpu) == (9, None)


def test_the_watch_looks_in_between() -> None:
    looks = threading.Semaphore(0)
    peak = Peak(looks.release, lambda: 1, seconds=0.001)
    with peak.watched():
        for _ in range(4):
            assert looks.acquire(timeout=10)
    assert peak.gpu == 1
