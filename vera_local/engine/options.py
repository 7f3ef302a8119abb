"""How probable each of several answers is to a model that nothing constrains. Knows no engine and no rubric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from vera_local.engine.seam import NO_USAGE, Engine, EngineError, InvalidRequest, Reply, Request, Usage
from vera_local.together import together

NEGLIGIBLE = 1e-4
"""A beginning less probable than this is not followed further: what may come behind it counts as 0."""


ROUNDING = 1e-3
"""How far above 0 a log-probability may lie by rounding."""


@dataclass(slots=True)
class _Node:
    """A beginning that options share. `option`: the text that ends here; `beginning`: how probable it is."""

    option: str | None = None
    children: dict[int, _Node] = field(default_factory=dict)
    beginning: float = 0.0

    @property
    def covered(self) -> float:
        """How probable it is that the text begins with an option that ends here or further on."""
        return self.beginning if self.option is not None else self.longer

    @property
    def longer(self) -> float:
        """How probable it is that the text begins with an option that ends further on."""
        return sum(child.covered for child in self.children.values())


async def option_probabilities(
    engine: Engine, request: Request, options: Sequence[str]
) -> tuple[dict[str, float], Usage]:
    """Each option -> the probability that the free answer to `request` begins with it and with no longer option.

    One label read for each beginning that options share, at the place where the answer of `request` begins or, with
    `begun`, goes on; its pattern, stop and sampling have no part in it. The usage is that of all reads together.
    Raises InvalidRequest for an option without tokens or two options of the same tokens (a tokenizer may know no
    letter of either), EngineError where what was read is no probability, and what the engine raises.
    """
    root = _Node(beginning=1.0)
    for option in options:
        _insert(root, option, await engine.tokens(option))
    usage = await _read(engine, replace(request, pattern=None, stop=""), root)
    shares = dict(_shares(root))
    return {option: shares[option] for option in options}, usage


def _insert(root: _Node, option: str, tokens: Sequence[int]) -> None:
    node = root
    for token in tokens:
        node = node.children.setdefault(token, _Node())
    if node is root or node.option is not None:
        raise InvalidRequest(f"the option {option!r} has no tokens that are its own")
    node.option = option


async def _read(engine: Engine, request: Request, node: _Node) -> Usage:
    """Fill in how probable the beginnings behind `node` are, whose own tokens are the end of `request.begun`."""
    if not node.children or node.beginning < NEGLIGIBLE:
        return NO_USAGE
    sampling = replace(request.sampling, max_tokens=1)
    reply = await engine.generate(replace(request, sampling=sampling, labels=tuple(node.children)))
    for token, child in node.children.items():
        child.beginning = node.beginning * _probability(reply, token)
    async with together() as group:
        further = [
            group.create_task(_read(engine, replace(request, begun=(*request.begun, token)), child))
            for token, child in node.children.items()
            if child.children
        ]
    return sum((task.result() for task in further), reply.usage)


def _probability(reply: Reply, token: int) -> float:
    logprob = reply.label_logprobs.get(token, math.nan)
    if not logprob <= ROUNDING:
        raise EngineError(f"the log-probability that came back for token {token} is none ({logprob})")
    return min(1.0, math.exp(logprob))


def _shares(node: _Node) -> list[tuple[str, float]]:
    own = [] if node.option is None else [(node.option, max(0.0, node.beginning - node.longer))]
    return [*own, *(share for child in node.children.values() for share in _shares(child))]
