"""What to tell of tasks that failed together. Knows no task."""

from __future__ import annotations

from vera_local.chatbot import ChatbotDown
from vera_local.engine.seam import EngineDied, EngineError, EngineLost
from vera_local.errors import UserError

OwnFault = UserError | ChatbotDown
"""What ends one run and no other: each run has its own chatbot."""


def own_fault(failed: UserError | ExceptionGroup[Exception]) -> OwnFault:
    """Why a run alone cannot go on; raises what failed where that concerns other runs, too."""
    if isinstance(failed, UserError):
        return failed
    told = cause(failed)
    if isinstance(told, OwnFault) and failed.subgroup(_of_all) is None:
        return told
    raise failed


def _of_all(failed: BaseException) -> bool:
    return isinstance(failed, EngineDied) and not isinstance(failed, ChatbotDown)


def cause(group: ExceptionGroup[Exception]) -> Exception:
    """The user's part first, then that of an engine, best of one that can be opened anew; the group itself without."""
    for kind in (UserError, EngineLost, EngineDied, EngineError):
        leaf: Exception | None = group.subgroup(kind)
        while isinstance(leaf, ExceptionGroup):
            leaf = leaf.exceptions[0]
        if leaf is not None:
            return leaf
    return group
