"""From the logits of one position to one token. Knows no model and no other request."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from vera_local.engine.seam import Sampling

if TYPE_CHECKING:
    from torch import Tensor

GREEDY = 1e-5
"""Temperatures below this divide logits into infinities, and differ from 0 in nothing else."""


class Dice:
    """Draws the tokens of one request from its own seed, on the CPU, so that neighbours and devices change nothing.

    `seen` are the tokens that a repetition penalty counts as said already.
    """

    def __init__(self, sampling: Sampling, seen: Sequence[int]) -> None:
        import torch

        self._sampling = sampling
        self._seen = set(seen)
        self._generator = torch.Generator().manual_seed(sampling.seed)

    def draw(self, logits: Tensor, allowed: Sequence[int] | None) -> int:
        """The next token. `logits`: raw, one per token of the vocabulary; `allowed` None: any token."""
        import torch

        logits = _penalised(logits.float(), self._seen, self._sampling.repetition_penalty)
        if allowed is not None:
            logits = _only(logits, allowed)
        if self._sampling.temperature < GREEDY:
            token = int(logits.argmax())
        else:
            chances = _nucleus(torch.softmax(logits / self._sampling.temperature, -1), self._sampling.top_p)
            token = int(torch.multinomial(chances.cpu(), 1, generator=self._generator))
        self._seen.add(token)
        return token


def _penalised(logits: Tensor, seen: Collection[int], penalty: float) -> Tensor:
    """Make seen tokens less likely, whatever the sign of their logit."""
    if penalty == 1.0:
        return logits
    logits, tokens = logits.clone(), list(seen)
    said = logits[tokens]
    logits[tokens] = (said / penalty).where(said > 0, said * penalty)
    return logits


def _only(logits: Tensor, allowed: Sequence[int]) -> Tensor:
    import torch

    masked = torch.full_like(logits, -torch.inf)
    masked[list(allowed)] = logits[list(allowed)]
    return masked


def _nucleus(chances: Tensor, top_p: float) -> Tensor:
    """Keep the likeliest tokens that together reach `top_p`; the most likely one always stays."""
    if top_p >= 1.0:
        return chances
    ordered, tokens = chances.sort(descending=True)
    beyond = ordered.cumsum(-1) - ordered >= top_p
    return chances.index_fill(0, tokens[beyond], 0.0)
