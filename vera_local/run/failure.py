"""What to tell of tasks that failed together. Knows no task."""

from __future__ import annotations

from vera_local.engine.seam import EngineDied
from vera_local.errors import UserError


def cause(group: ExceptionGroup[Exception]) -> Exception:
    """The user's part first, then an engine's; the group itself where it holds neither."""
    for kind in (UserError, EngineDied):
        leaf: Exception | None = group.subgroup(kind)
        while isinstance(leaf, ExceptionGroup):
            leaf = leaf.exceptions[0]
        if leaf is not None:
            return leaf
    return group
