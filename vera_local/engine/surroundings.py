"""What an engine's processes find when they start: where they print and which GPUs they see. Knows no engine."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from vera_local.engine.machine import VISIBLE


@contextlib.contextmanager
def on_gpus(numbers: Sequence[int]) -> Iterator[None]:
    """Show processes that start meanwhile these of the visible GPUs alone; none: all that are visible.

    Never run on a GPU here.
    """
    before = os.environ.get(VISIBLE)
    if numbers:
        # The list may hold UUIDs; its entries go on as they are.
        entries = [entry.strip() for entry in before.split(",")] if before is not None else None
        os.environ[VISIBLE] = ",".join(str(number) if entries is None else entries[number] for number in numbers)
    try:
        yield
    finally:
        if numbers and before is None:
            del os.environ[VISIBLE]
        elif before is not None:
            os.environ[VISIBLE] = before


@contextlib.contextmanager
def output_to(log: Path) -> Iterator[None]:
    """Send descriptors 1 and 2 to `log` while vLLM's processes start: they keep it, we get ours back."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    kept = [os.dup(1), os.dup(2)]
    _flush()
    try:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        yield
    finally:
        _flush()
        for number, old in zip((1, 2), kept, strict=True):
            os.dup2(old, number)
            os.close(old)
        _log_to(descriptor)


def _flush() -> None:
    """What Python still holds back belongs to where the descriptors lead now."""
    sys.stdout.flush()
    sys.stderr.flush()


def _log_to(descriptor: int) -> None:
    """From now on vLLM's own log lines in this process go to the file, too."""
    stream = os.fdopen(descriptor, "a")
    for name in ("vllm", "transformers"):
        logger = logging.getLogger(name)
        logger.handlers = [logging.StreamHandler(stream)]
        logger.propagate = False
