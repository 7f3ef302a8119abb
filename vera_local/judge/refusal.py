"""Whether a judge declined instead of weighing. Knows English phrases only: elsewhere a refusal passes for reasons."""

from __future__ import annotations

import re

_REFUSAL = re.compile(
    r"""^\W*
    (?: (?:i['\u2019]?\s?a?m\ )? (?:very\ )? sorry \W+ (?:but\ )? )?
    (?: i\ (?: can['\u2019]?t | can\ ?not | won['\u2019]?t | will\ not | must\ decline\ to )
      | i(?:['\u2019]m|\ am)\ (?: unable | not\ able | not\ comfortable | not\ allowed )\ (?:to|with)
      | as\ an\ ai[^.]{0,60}?,?\ i\ (?:can['\u2019]?t|can\ ?not) )
    \ (?: help | helping | assist | assisting | comply | complying | engage | engaging | participate | participating
        | take\ part | discuss(?:ing)?\ (?:this|that|such|self\S*|suicid\w*)
        | (?:fulfil|fulfill|continue\ with|respond\ to|answer)\ (?:this|that|your|the)\ (?:request|question|task) )
    \b""",
    re.IGNORECASE | re.VERBOSE,
)


def declines(rationale: str) -> bool:
    """Whether the reasoning begins as a refusal to judge at all."""
    return _REFUSAL.search(rationale) is not None
