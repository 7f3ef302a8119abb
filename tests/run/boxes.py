"""OpenAI-compatible servers that are none, and what a run on them tells. Knows no test."""

from __future__ import annotations

import asyncio
import io
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from rich.console import Console

from tests.answers import at_random, choices
from vera_local.engine.fake import FakeEngine
from vera_local.engine.openai import OpenAIEngine
from vera_local.engine.seam import Engine
from vera_local.run import Opening, Watcher
from vera_local.run.progress import Meter

URLS = tuple(f"http://box{n}:8000/v1" for n in range(3))
REQUESTS = 3


class Box(httpx.AsyncBaseTransport):
    """A served model whose replies depend on the request alone. It is gone once it answered `lives` requests: nobody
    listens there any more, or it says `status` to everything, or what is `sick` to all but the list of its models."""

    def __init__(self) -> None:
        self.lives: int | None = None
        self.status: int | None = None
        self.sick: httpx.Response | None = None
        self.context = 100_000
        self.in_flight = self.peak = 0
        self.heard: list[dict[str, Any]] = []
        self.opened = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        listing, gone = request.url.path == "/v1/models", self.lives is not None and self.lives <= 0
        if gone and self.sick is not None and not listing:
            return self.sick
        if gone and self.sick is None:
            if self.status is None:
                raise httpx.ConnectError("connection refused")
            return httpx.Response(self.status)
        if listing:
            return httpx.Response(200, json={"data": [{"id": "m", "max_model_len": self.context}]})
        if request.url.path != "/v1/chat/completions":
            return httpx.Response(404)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await asyncio.sleep(0.001)
            return self._answered(json.loads(request.content))
        finally:
            self.in_flight -= 1

    def _answered(self, body: dict[str, Any]) -> httpx.Response:
        self.heard.append(body)
        if self.lives is not None:
            self.lives -= 1
        draw, pattern = random.Random(body["seed"]), body.get("structured_outputs", {}).get("regex")
        text = f"message {draw.random()}"
        if pattern is not None:
            text = draw.choice(choices(pattern))
        answer = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": USAGE}
        return httpx.Response(200, json=answer)


USAGE = {"prompt_tokens": 12, "completion_tokens": 3}


class Boxes:
    """Opens engines on boxes, and fake ones for what this machine is to host."""

    def __init__(self) -> None:
        self.at = {url: Box() for url in URLS}

    async def __call__(self, opening: Opening) -> Engine:
        if opening.server is None:
            return FakeEngine(at_random)
        box = self.at[opening.server.url]
        box.opened += 1
        return await OpenAIEngine.open(opening.player.profile, opening.server, None, box)

    @property
    def first(self) -> Box:
        return self.at[URLS[0]]


class Counting(Watcher):
    """Keeps the meters of the stages, and what is told."""

    def __init__(self) -> None:
        self.told = io.StringIO()
        self.meters: list[Meter] = []
        super().__init__(Console(file=self.told, width=400))

    @contextmanager
    def stage(self, meter: Meter) -> Iterator[Callable[[], None]]:
        self.meters.append(meter)
        with super().stage(meter) as changed:
            yield changed

    def must_have_counted_right(self) -> None:
        """Each meter is at its end, though conversations moved."""
        assert sum(meter.moved for meter in self.meters) > 0
        assert [meter.in_flight for meter in self.meters] == [0] * len(self.meters)
        assert [meter.steps_done for meter in self.meters] == [meter.steps for meter in self.meters]
        assert [meter.jobs_done for meter in self.meters] == [meter.jobs for meter in self.meters]
