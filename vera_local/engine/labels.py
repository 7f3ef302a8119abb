"""What holds for every read of labels. Knows no engine."""

from __future__ import annotations

from vera_local.engine.seam import InvalidRequest, Request

MOST = 128
"""Labels that vLLM reads at once."""


def check_labels(request: Request) -> None:
    """Raise InvalidRequest where the labels of a request cannot be read."""
    if request.labels and request.pattern is not None:
        raise InvalidRequest("labels are read from a free answer: ask without a pattern")
    if len(request.labels) > MOST:
        raise InvalidRequest(f"{len(request.labels)} labels were asked for, and at most {MOST} are read at once")
