"""What vLLM writes where memory is short, and what helps then. Knows no engine: it reads text."""

from __future__ import annotations

from pathlib import Path

MOST = 1 << 20
"""Bytes of a log that are looked through, from its end: a start that fails writes far less."""

OTHERS = (
    "other programs hold the memory that it was to have: end them, or set a smaller gpu_memory_utilization in the "
    "model's profile"
)
NO_CACHE = (
    "the weights leave no memory for the KV cache: set a smaller max_num_seqs or a larger gpu_memory_utilization in "
    "the model's profile, or use a smaller or quantised model or more GPUs (tensor_parallel_size)"
)
SMALL_CACHE = (
    "not even one conversation of the longest kind fits the KV cache: set a smaller context or a larger "
    "gpu_memory_utilization in the model's profile"
)
EMPTY = (
    "memory ran out: set a smaller context, max_num_seqs or gpu_memory_utilization in the model's profile, or use a "
    "smaller or quantised model or more GPUs (tensor_parallel_size)"
)

SIGNS = (
    ("is less than desired", OTHERS),
    ("No available memory for the cache blocks", NO_CACHE),
    ("larger than the available KV cache", SMALL_CACHE),
    ("not enough GPU memory", EMPTY),
    ("out of memory", EMPTY),
    ("can't allocate memory", EMPTY),
)
"""What vLLM 0.32 and torch write (the last one on a CPU), and what it means; one that tells more comes earlier."""


def shortage(text: str) -> str | None:
    """Why memory was short and what helps, as a part of a sentence; None where the text tells of no shortage."""
    return next((meaning for sign, meaning in SIGNS if sign in text), None)


class Written:
    """What is written to a log from now on, by whatever process."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._start = log.stat().st_size if log.exists() else 0

    def text(self) -> str:
        """All of it, or its end where it is long; nothing where the log is gone."""
        try:
            with self._log.open("rb") as file:
                file.seek(max(self._start, self._log.stat().st_size - MOST))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""
