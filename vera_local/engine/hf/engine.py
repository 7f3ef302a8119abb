"""The transformers library behind the seam. Knows nothing clinical."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vera_local.engine.hf.batch import Batch
from vera_local.engine.hf.constraint import Constraints
from vera_local.engine.hf.network import Network, free_memory, load
from vera_local.engine.hf.row import Marks, Row
from vera_local.engine.hf.worker import Worker
from vera_local.engine.labels import check_labels
from vera_local.engine.offline import go_offline
from vera_local.engine.placement import ANYWHERE, Place
from vera_local.engine.profile import Profile
from vera_local.engine.seam import ChatMessage, ContextOverflow, InvalidRequest, Limits, Reply, Request
from vera_local.engine.template import ChatTemplate
from vera_local.errors import UserError

SEQUENCES = 4
"""Answers written at once, and prompts kept. Each may hold the keys and values of a whole context."""


class TransformersEngine:
    """One model in this process, on the best device that torch has here."""

    def __init__(self, network: Network, template: ChatTemplate, context: int) -> None:
        self._template = template
        self._ends = _ends(network, template.tokenizer)
        self._vocabulary = network.vocabulary
        self._limits = Limits(context=context, kv_tokens=None, sequences=network.rows)
        self._worker = Worker(Batch(network, Constraints(template.tokenizer, self._ends)))

    @classmethod
    def open(cls, profile: Profile, folder: Path, log: Path, place: Place = ANYWHERE) -> TransformersEngine:
        """Load the model and be ready to generate.

        `log` receives what transformers prints; of the `place` the first GPU counts. Raises UserError where the files
        or this machine do not do.
        """
        go_offline()
        template = ChatTemplate.load(folder, profile.template, code=bool(profile.engine.trust_remote_code))
        rows = min(SEQUENCES, profile.engine.max_num_seqs or SEQUENCES)
        return cls(Network(load(profile, folder, log, place.gpus), rows), template, profile.context)

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def markers(self) -> tuple[str, ...]:
        return self._template.markers

    async def count_tokens(self, messages: Sequence[ChatMessage], *, thinking: bool = False) -> int:
        return len(self._template.ids(messages, thinking))

    async def tokens(self, text: str) -> tuple[int, ...]:
        return self._template.tokens(text)

    async def generate(self, request: Request) -> Reply:
        check_labels(request)
        ids = (*self._template.ids(request.messages, request.thinking), *request.begun)
        if len(ids) + request.sampling.max_tokens > self._limits.context:
            raise ContextOverflow(len(ids), self._limits.context)
        if not ids or not all(0 <= token < self._vocabulary for token in (*ids, *request.labels)):
            raise InvalidRequest(f"the request is empty, or holds a token that is not one of {self._vocabulary}")
        row = Row(request, ids, self._marks(request.stop), self._template)
        self._worker.submit(row)
        return await asyncio.wrap_future(row.future)

    async def aclose(self) -> None:
        await asyncio.to_thread(self._worker.close)
        free_memory()

    def _marks(self, stop: str) -> Marks:
        """Control tokens never show up in the text; a plain token can be a part of another one."""
        control = self._template.control(stop) if stop else None
        return Marks(frozenset(self._ends), control, stop if control is None else "")


def _ends(network: Network, tokenizer: Any) -> tuple[int, ...]:
    """The tokens that end an answer, the tokenizer's own first."""
    own = () if tokenizer.eos_token_id is None else (tokenizer.eos_token_id,)
    ends = tuple(dict.fromkeys((*own, *network.ends)))
    if not ends:
        raise UserError("the model's files name no token that ends an answer; choose an instruction-tuned model")
    return ends
