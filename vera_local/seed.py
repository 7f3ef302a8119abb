"""Seeds for single requests, derived from one run seed. Knows nothing of what is drawn with them."""

from __future__ import annotations

import hashlib


def derive(run_seed: int, *parts: str | int) -> int:
    """A seed in [0, 2^31) that depends on the run's seed and the request's place alone, never on order or time."""
    text = "\x1f".join(str(part) for part in (run_seed, *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1
