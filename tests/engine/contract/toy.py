"""A tiny language model on a FakeEngine, so that what holds for real engines can be asked of it, too."""

from __future__ import annotations

import math
from random import Random

from vera_local.engine.fake import NEVER, FakeEngine
from vera_local.engine.seam import Finish, Limits, Reply, Request, Sampling, Usage

END = "<|end|>"
WORDS = (" sea", " sky", " wide", " high", " the", " is", " and", " blue", " deep", " cold", " far", " calm")


class Toy:
    """Draws each word from what was asked and written before."""

    def __init__(self) -> None:
        limits = Limits(context=600, kv_tokens=None, sequences=8)
        self.engine = FakeEngine(self._answer, limits, markers=(END,))

    async def _answer(self, request: Request) -> Reply:
        prompt = await self.engine.count_tokens(request.messages, thinking=request.thinking) + len(request.begun)
        text, finish = self._chosen(request) if request.pattern is not None else self._free(request)
        ended = 0 if finish is Finish.LENGTH else 1
        usage = Usage(prompt=prompt, output=len(await self.engine.tokens(text)) + ended)
        following = self._following(request, "")
        likely = {self.engine.text([i]): i for i in request.labels}
        labels = {i: math.log(following[word]) if word in following else NEVER for word, i in likely.items()}
        return Reply(text, finish, usage, labels)

    def _chosen(self, request: Request) -> tuple[str, Finish]:
        options = [o.replace("\\", "") for o in str(request.pattern).strip("()$").split("|")]
        return Random(request.sampling.seed).choice(options), Finish.MARK if request.stop == END else Finish.STOP

    def _free(self, request: Request) -> tuple[str, Finish]:
        text = ""
        for place in range(request.sampling.max_tokens):
            text += _drawn(self._following(request, text), request.sampling, place)
            if request.stop and request.stop in text:
                return text[: text.index(request.stop)], Finish.MARK
        return text, Finish.LENGTH

    def _following(self, request: Request, text: str) -> dict[str, float]:
        draw = Random(f"{request.messages} {self.engine.text(request.begun)}{text}")
        weights = [draw.random() ** 2 + 0.01 for _ in WORDS]
        return {word: weight / sum(weights) for word, weight in zip(WORDS, weights, strict=True)}


def _drawn(following: dict[str, float], sampling: Sampling, place: int) -> str:
    if sampling.temperature == 0:
        return max(following, key=lambda word: following[word])
    weights = [p ** (1 / sampling.temperature) for p in following.values()]
    return Random(f"{sampling.seed} {place}").choices(list(following), weights)[0]
