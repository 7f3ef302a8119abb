"""Workers and a chatbot that is not one of their engines: each of them talks to it, and what comes out is the same."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Request

from tests.answers import at_random
from tests.chatbot.serving import Served, Sessions, completions
from tests.run.cluster.local import Local, Lose, never
from tests.run.cluster.test_spread import at, spread_over
from tests.run.test_chatbots import KEY, PROGRAM, sessions_table
from tests.run.test_side_by_side import contents, late
from vera_local.engine.seam import Limits
from vera_local.run import Plan, Watcher, run

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]
SMALL = Limits(100_000, 40_000, 8, ridge=16)
HOW = {"personas": 8, "turns": 6}


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Sessions, str]]:
    monkeypatch.setenv("BOT_KEY", KEY)
    kept = Sessions()
    served = Served(kept.app)
    yield kept, served.url
    served.stop()


@pytest.fixture
def same(make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path) -> Any:
    """That a run over workers gives what one of a single process gives."""

    async def must_be(chatbot: Any, lose: Lose = never, size: int = 3) -> Local:
        alone = make(out=tmp_path / "alone", chatbot=chatbot, **HOW)
        await run(alone, answering(at_random), watcher)
        plan, gather = make(chatbot=chatbot, **HOW), Local(answering(late(1), SMALL), size, lose)
        await spread_over(plan, gather, watcher)
        assert contents(plan) == contents(alone)
        return gather

    return must_be


async def test_a_service_with_sessions(same: Any, sessions: tuple[Sessions, str]) -> None:
    kept, url = sessions
    await same(sessions_table(url, concurrency=6))
    assert Counter(Counter(session for session, _ in kept.heard).values()) == {3: 16}
    assert len(kept.ended) == 16
    assert kept.keys == {KEY}


@pytest.mark.parametrize("seed", range(4))
async def test_conversations_whose_session_went_with_a_worker_begin_anew(
    same: Any, sessions: tuple[Sessions, str], seed: int
) -> None:
    _, url = sessions
    gather = await same(sessions_table(url), at(seed, 4, 20))
    assert any(remote.gone for remote in gather.fleets[0].started)


@pytest.mark.parametrize("seed", range(2))
async def test_a_server_that_is_told_the_whole_history(same: Any, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setenv("OUR_KEY", KEY)
    asked: list[Any] = []
    served = Served(lambda: completions("our-model", KEY, asked))
    try:
        await same({"model": "our-model", "url": f"{served.url}/v1", "key_env": "OUR_KEY"}, at(seed, 4, 20))
    finally:
        served.stop()
    assert max(len(body["messages"]) for body in asked) == 5


async def test_a_program_for_each_conversation(same: Any, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(PROGRAM)
    await same({"kind": "command", "command": [sys.executable, str(tmp_path / "bot.py")], "concurrency": 3})


async def test_recordings(same: Any, make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path) -> None:
    await run(make(out=tmp_path / "first", **HOW), answering(at_random), watcher, judge=False)
    await same(f"recorded:{tmp_path / 'first' / 'conversations.jsonl'}")


async def test_workers_together_keep_the_chatbot_s_limit(same: Any) -> None:
    at_once = most = 0

    def slow() -> FastAPI:
        app = FastAPI()

        @app.post("/talk")
        async def talk(request: Request) -> Any:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0.02)
            at_once -= 1
            return {"reply": str(len((await request.json())["all"]))}

        return app

    served = Served(slow)
    table = {"kind": "http", "url": f"{served.url}/talk", "request": {"all": "{history}"}, "reply": "reply"}
    try:
        await same(table | {"concurrency": 3})
    finally:
        served.stop()
    assert 1 < most <= 3
