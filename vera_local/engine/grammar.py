"""Allowed answers -> the regular expression that Outlines constrains generation to. Knows no engine and no rubric."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache


def pattern_of(options: Sequence[str]) -> str:
    """A pattern that matches exactly the option texts, in the form that outlines_core runs.

    Raises ValueError where there is no option to choose from.
    """
    if not options:
        raise ValueError("a constrained answer needs at least one option")
    return _pattern(tuple(options))


@lru_cache(maxsize=1024)
def _pattern(options: tuple[str, ...]) -> str:
    # As outlines.types.Choice has it; importing that would import transformers, seconds and 80 MB for one line.
    choice = "|".join(map(re.escape, options))
    # Without the anchor outlines_core ends at the first option that is complete: with "No" among the options, "Not" is
    # no way to "Not Relevant" any more, and the model could never give that answer.
    return f"({choice})$"
