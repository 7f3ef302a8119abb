"""The most memory that this process, its children and the GPUs had in use. Knows no engine and no run."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vera_local.engine.machine import Gpu, visible

SECONDS = 10.0
"""Pause between two looks at the GPUs; engines take their memory when they start and keep it."""

QUERY = ("nvidia-smi", "--query-gpu=index,uuid,memory.used", "--format=csv,noheader,nounits")

Measure = Callable[[], int | None]


class Peak:
    """Watches from a thread of its own: nvidia-smi takes long enough to hold up an event loop.

    Both peaks are in bytes, None where nothing could be measured.
    """

    def __init__(self, memory: Measure, gpus: Measure, seconds: float = SECONDS) -> None:
        self._memory, self._gpus, self._seconds = memory, gpus, seconds
        self._watchers = 0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.memory: int | None = None
        self.gpu: int | None = None

    @classmethod
    def here(cls) -> Peak:
        """That of this machine."""
        return cls(tree_bytes, gpu_bytes if shutil.which(QUERY[0]) else _nothing)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at the beginning, at the end and in between; may be entered again meanwhile.

        There is no thread outside, so that engines can be started there: some of them fork.
        """
        if self._watchers == 0:
            self._ended.clear()
            self._thread = threading.Thread(target=self._watch, daemon=True, name="memory")
            self._thread.start()
        self._watchers += 1
        try:
            yield
        finally:
            self._watchers -= 1
            if self._watchers == 0 and self._thread is not None:
                self._ended.set()
                self._thread.join()

    def _watch(self) -> None:
        ended = False
        while not ended:
            self._look()
            ended = self._ended.wait(self._seconds)
        self._look()

    def _look(self) -> None:
        self.memory = _larger(self.memory, self._memory())
        self.gpu = _larger(self.gpu, self._gpus())


def _nothing() -> None:
    """There is no GPU."""


def _larger(one: int | None, other: int | None) -> int | None:
    return max((size for size in (one, other) if size is not None), default=None)


def tree_bytes(proc: Path = Path("/proc"), root: int | None = None) -> int | None:
    """The most that each living process of this one's family ever had in RAM, added up; None without /proc.

    So no peak is missed between two looks. What processes share counts in each of them.
    """
    parents = {int(status.parent.name): status for status in proc.glob("[0-9]*/status")}
    facts = {pid: known for pid, status in parents.items() if (known := _facts(status)) is not None}
    root = os.getpid() if root is None else root
    if root not in facts:
        return None
    return 1024 * sum(facts[pid][1] for pid in _family(root, {pid: parent for pid, (parent, _) in facts.items()}))


def _facts(status: Path) -> tuple[int, int] | None:
    """Parent and peak (KiB) of a process; None where it ended."""
    try:
        lines = status.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    told = dict(line.split(":", 1) for line in lines if line.startswith(("PPid:", "VmHWM:")))
    # A kernel's own thread and a process that has ended, but whom nobody asked how, have none.
    return int(told["PPid"]), int(told.get("VmHWM", "0 kB").split()[0])


def _family(root: int, parents: dict[int, int]) -> set[int]:
    family, waiting = {root}, [root]
    while waiting:
        parent = waiting.pop()
        children = {pid for pid, its in parents.items() if its == parent} - family
        family |= children
        waiting += children
    return family


def gpu_bytes() -> int | None:
    """What is in use on the GPUs that are visible to us, by whatever program; None where nobody tells."""
    try:
        answer = subprocess.run(QUERY, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    gpus = [_gpu(line) for line in answer.stdout.splitlines() if line.strip()] if answer.returncode == 0 else []
    told = [gpu.memory_bytes for gpu in visible(gpus)]
    return sum(told) or None


def _gpu(line: str) -> Gpu:
    """With the memory in use for its size; 0 where the GPU shares the machine's and tells none of its own."""
    number, uuid, used = (part.strip() for part in line.split(","))
    return Gpu(number, uuid, "", int(used) * 2**20 if used.isdigit() else 0)
