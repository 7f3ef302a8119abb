"""What the contract's tests need to know of an engine beside the seam."""

from __future__ import annotations

from typing import NamedTuple

from vera_local.engine.seam import Engine


class Subject(NamedTuple):
    """`end` is the control token that ends the answers of the engine's model."""

    engine: Engine
    end: str
