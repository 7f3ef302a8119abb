"""How often answers or ratings of the same thing are the same: plain shares, without chance taken out. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Share(NamedTuple):
    """`alike` of `total`."""

    alike: int
    total: int
