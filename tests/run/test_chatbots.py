"""Small evaluations of each kind of chatbot, each against a real counterpart; restarts, outages and resumes."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.answers import at_random
from tests.chatbot import faulty
from tests.chatbot.faulty import Asked, Faulty, said, serving
from tests.chatbot.serving import Served, Sessions, completions, counts_history
from tests.run.heard import Heard
from tests.run.held import held
from vera_local.chatbot import ChatbotDown
from vera_local.conversation import Conversation, Ending, Speaker
from vera_local.engine.probe import SEED as PROBE
from vera_local.engine.seam import Request
from vera_local.errors import UserError
from vera_local.run import Outcome, Plan, Watcher, manifest, run
from vera_local.run.store import NAME

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]
KEY = "s3cret-key-of-the-bot"
ROOT = Path(__file__).parents[2]
FAST = {"backoff": 0.001, "retries": 2, "connect_timeout": 2, "timeout": 10}


def rows(folder: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(folder / NAME)) as db:
        return db.execute(query).fetchall()


def replies(conversation: Conversation) -> list[str]:
    return [m.text for m in conversation.messages if m.speaker is Speaker.CHATBOT]


def must_be_whole(outcome: Outcome) -> None:
    """Every conversation was held to its end and judged."""
    assert {c.ending for c in outcome.conversations} == {Ending.TURNS}
    assert {c.turns for c in outcome.conversations} == {4}
    (scores,) = outcome.scores.values()
    assert scores.conversations == len(outcome.conversations) == 4


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Sessions, Served]]:
    monkeypatch.setenv("BOT_KEY", KEY)
    sessions = Sessions()
    served = Served(sessions.app)
    yield sessions, served
    served.stop()


def sessions_table(url: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": "http",
        "url": f"{url}/talk",
        "headers": {"X-Api-Key": "env:BOT_KEY"},
        "request": {"session": "{session}", "text": "{message}"},
        "reply": "out.0.text",
        "start": {"url": f"{url}/start", "session": "id"},
        "end": {"url": f"{url}/talks/{{session}}", "method": "DELETE"},
        **FAST,
        **more,
    }


async def test_a_service_with_sessions(
    make: MakePlan, answering: Answering, watcher: Watcher, service: tuple[Sessions, Served]
) -> None:
    sessions, served = service
    outcome = await run(make(chatbot=sessions_table(served.url)), answering(at_random), watcher)
    must_be_whole(outcome)
    assert all([text.split()[1] for text in replies(c)] == ["1", "2"] for c in held(outcome))
    assert Counter(Counter(session for session, _ in sessions.heard).values()) == {2: 4}
    assert len(sessions.ended) == 4
    assert sessions.keys == {KEY}


async def test_a_service_that_restarts_in_the_middle_loses_sessions_and_the_run_goes_on(
    make: MakePlan, answering: Answering, watcher: Watcher, service: tuple[Sessions, Served]
) -> None:
    sessions, served = service
    restarted = False

    async def handler(request: Request) -> str:
        nonlocal restarted
        # By now every conversation has a session that the restart forgets.
        if not restarted and len(sessions.heard) >= 4 and request.pattern is None:
            restarted = True
            await asyncio.to_thread(served.stop)
            await asyncio.to_thread(served.start)
        return at_random(request)

    plan = make(chatbot=sessions_table(served.url))
    first = await run(plan, answering(handler), watcher)
    assert restarted
    failed = [c for c in first.conversations if c.ending is Ending.CHATBOT]
    assert failed
    assert "no such session" in first.reasons["chatbot"]
    assert not any(c.judgeable for c in failed)
    judged = {c for (c,) in rows(plan.out, "select distinct conversation from verdicts")}
    assert judged == {c.id for c in first.conversations} - {c.id for c in failed}
    kept = {c.id: c for c in held(first) if c.ending is Ending.TURNS}
    again = await run(plan, answering(at_random), watcher)
    must_be_whole(again)
    assert all(kept[c.id] == c for c in held(again) if c.id in kept)
    assert all([text.split()[1] for text in replies(c)] == ["1", "2"] for c in held(again)), "begun anew"


async def test_sessions_that_a_restart_forgets_are_no_sign_of_a_chatbot_that_is_down(
    make: MakePlan, answering: Answering, watcher: Watcher, service: tuple[Sessions, Served]
) -> None:
    _, served = service
    back, waiting = asyncio.Event(), 0

    async def handler(request: Request) -> str:
        nonlocal waiting
        if any("reply 1 to" in m.content for m in request.messages):
            waiting += 1
            if waiting == 12:
                await asyncio.to_thread(served.stop)
                await asyncio.to_thread(served.start)
                back.set()
            await back.wait()
        return at_random(request)

    plan = make(chatbot=sessions_table(served.url, give_up_after=3, concurrency=12, retries=9), personas=12)
    first = await run(plan, answering(handler), watcher, judge=False)
    assert Counter(c.ending for c in first.conversations) == {Ending.CHATBOT: 12}
    assert "it has lost this conversation" in first.reasons["chatbot"]
    again = await run(plan, answering(at_random), watcher, judge=False)
    assert {c.ending for c in again.conversations} == {Ending.TURNS}


async def test_a_short_outage_is_bridged(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    served = Served(counts_history)
    back: list[asyncio.Task[None]] = []

    async def return_later() -> None:
        await asyncio.sleep(0.3)
        await asyncio.to_thread(served.start)

    async def handler(request: Request) -> str:
        if not back and request.sampling.seed != PROBE:
            served.stop()
            back.append(asyncio.create_task(return_later()))
        return at_random(request)

    table = {"kind": "http", "url": f"{served.url}/talk", "request": {"all": "{history}"}, "reply": "reply"}
    outcome = await run(make(chatbot=table | {"retries": 30, "backoff": 0.01}), answering(handler), watcher)
    await back[0]
    served.stop()
    must_be_whole(outcome)
    assert {tuple(replies(c)) for c in held(outcome)} == {("1", "3")}


async def test_a_chatbot_that_is_down_stops_the_run_and_everything_is_kept(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    up = True

    def decide(asked: Asked) -> faulty.Act:
        return said({"reply": "yes"}) if up else faulty.sent(b"", 500)

    async def handler(request: Request) -> str:
        nonlocal up
        up = up and len(raw.asked) < 15
        return at_random(request)

    async with serving(decide) as raw:
        table = {"kind": "http", "url": raw.url, "request": {"h": "{history}"}, "reply": "reply", **FAST}
        plan = make(chatbot=table | {"concurrency": 3}, personas=30)
        with pytest.raises(ChatbotDown, match=r"is down: 10 conversations in a row .*status 500.*see to it"):
            await run(plan, answering(handler), watcher)
        told = rows(plan.out, "select ending, detail from conversations where ending = 'chatbot'")
        assert len(told) == 9 and {detail for _, detail in told} == {"it answered with status 500, in 3 tries"}
        before = set(rows(plan.out, "select conversation, turn, text from messages"))
        up = True
        outcome = await run(plan, answering(at_random), watcher, judge=False)
    assert {c.ending for c in outcome.conversations} == {Ending.TURNS}
    assert before <= set(rows(plan.out, "select conversation, turn, text from messages")), "told the whole history"


async def test_a_chatbot_that_remembers_begins_interrupted_conversations_anew(
    make: MakePlan, answering: Answering, service: tuple[Sessions, Served]
) -> None:
    sessions, served = service
    spoken = 0

    def dies(request: Request) -> str:
        nonlocal spoken
        spoken += 1
        # Four openings come first; the sixth message belongs to a conversation with a reply and without an end.
        if spoken == 6:
            raise RuntimeError("killed here")
        return at_random(request)

    plan, watcher = make(chatbot=sessions_table(served.url)), Heard()
    with pytest.raises(ExceptionGroup):
        await run(plan, answering(dies), watcher)
    begun = {c for (c,) in rows(plan.out, "select distinct conversation from messages where speaker = 'chatbot'")}
    ended = {c for (c,) in rows(plan.out, "select id from conversations where ending is not null")}
    sessions.heard.clear()
    must_be_whole(await run(plan, answering(at_random), watcher))
    assert begun - ended
    assert any(line.startswith(f"{len(begun - ended)} conversations begin anew") for line in watcher.lines)
    assert Counter(Counter(session for session, _ in sessions.heard).values()) == {2: 4 - len(ended)}


@pytest.mark.parametrize("stream", [False, True])
async def test_an_openai_compatible_server(
    make: MakePlan, answering: Answering, watcher: Watcher, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    asked: list[Any] = []
    monkeypatch.setenv("OUR_KEY", KEY)
    served = Served(lambda: completions("our-model", KEY, asked))
    try:
        table = {"model": "our-model", "url": f"{served.url}/v1", "key_env": "OUR_KEY", "stream": stream, **FAST}
        outcome = await run(make(chatbot=table), answering(at_random), watcher)
    finally:
        served.stop()
    must_be_whole(outcome)
    assert len(asked) == 8 and len({body["seed"] for body in asked}) == 8
    assert all(text.startswith("I heard: message") for c in held(outcome) for text in replies(c))


def counting() -> Callable[[str, list[dict[str, str]]], str]:
    heard: list[str] = []

    def reply(message: str, history: list[dict[str, str]]) -> str:
        heard.append(message)
        return f"{len(heard)} of {len(history)}"

    return reply


async def test_a_callable(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    outcome = await run(make(chatbot=f"python:{__name__}:counting"), answering(at_random), watcher)
    must_be_whole(outcome)
    assert {tuple(replies(c)) for c in held(outcome)} == {("1 of 1", "2 of 3")}


PROGRAM = """
import json, sys
for heard, line in enumerate(sys.stdin, 1):
    print(json.dumps({"reply": f"{heard} of {len(json.loads(line)['history'])}"}), flush=True)
"""


@pytest.mark.parametrize("shared", [False, True])
async def test_a_program(make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path, shared: bool) -> None:
    (tmp_path / "bot.py").write_text(PROGRAM)
    table = {"kind": "command", "command": [sys.executable, str(tmp_path / "bot.py")], "shared": shared}
    outcome = await run(make(chatbot=table | {"concurrency": 2}), answering(at_random), watcher)
    must_be_whole(outcome)
    heard = [int(text.split()[0]) for c in held(outcome) for text in replies(c)]
    assert sorted(heard) == (list(range(1, 9)) if shared else [1, 1, 1, 1, 2, 2, 2, 2])


async def test_recordings(make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path) -> None:
    first = await run(make(out=tmp_path / "first"), answering(at_random), watcher, judge=False)
    plan = make(chatbot=f"recorded:{tmp_path / 'first' / 'conversations.jsonl'}", out=tmp_path / "second", seed=5)
    second = await run(plan, answering(at_random), watcher)
    must_be_whole(second)
    assert [replies(c) for c in held(second)] == [replies(c) for c in held(first)]
    assert [c.messages for c in held(second)] != [c.messages for c in held(first)]


async def test_a_chatbot_alone_needs_no_engine_of_ours_to_answer_vignettes(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    opener = answering(at_random)
    plan = make(bundle="psychosis", turns=None, personas=3, chatbot=f"python:{__name__}:counting")
    outcome = await run(plan, opener, watcher, judge=False)
    assert opener.engines == []
    assert [replies(c) for c in held(outcome)] == [["1 of 1"]] * 3


async def test_a_chatbot_that_is_not_there_is_told_before_anything_is_written(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    async with serving(lambda _: said({})) as raw:
        pass
    plan = make(chatbot=sessions_table(raw.url, headers={}))
    with pytest.raises(UserError, match="no chatbot answers at"):
        await run(plan, answering(at_random), watcher)
    assert not plan.out.exists()


async def test_how_a_chatbot_is_treated_may_change_and_what_it_is_asked_may_not(
    make: MakePlan, answering: Answering, watcher: Watcher, service: tuple[Sessions, Served]
) -> None:
    _, served = service
    plan = make(chatbot=sessions_table(served.url))
    await run(plan, answering(at_random), watcher, judge=False)
    calmer = make(chatbot=sessions_table(served.url, concurrency=1, timeout=99))
    await run(calmer, answering(at_random), watcher, judge=False)
    with pytest.raises(UserError, match=r"holds a different run: chatbot\.settings\.reply was \"out\.0\.text\""):
        await run(make(chatbot=sessions_table(served.url, reply="x")), answering(at_random), watcher, judge=False)
    entered = manifest.read(plan.out)
    assert entered is not None and entered["identity"]["chatbot"]["model"] == f"127.0.0.1:{served.port}"


async def test_200_conversations_end_at_30_percent_faults(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    def good(asked: Asked) -> faulty.Act:
        return said({"reply": f"I hear {len(asked.json['h'])}"})

    faults = Faulty(good, share=0.3)
    async with serving(faults) as raw:
        table = {"kind": "http", "url": raw.url, "request": {"h": "{history}"}, "reply": "reply", **FAST}
        manners = {"timeout": 1, "concurrency": 32, "give_up_after": 100}
        plan = make(chatbot=table | manners, personas=100, repeats=2)
        outcome = await run(plan, answering(at_random), watcher, judge=False)
        asked = len(raw.asked)
    assert len(outcome.conversations) == 200
    endings = Counter(c.ending for c in outcome.conversations)
    assert endings.keys() == {Ending.TURNS, Ending.CHATBOT}, "the faults of this seed exhaust some budgets"
    texts = [text for c in held(outcome) for text in replies(c)]
    assert set(texts) == {"I hear 1", "I hear 3"}
    assert not rows(plan.out, f"select 1 from messages where text like '%{faulty.ERROR}%'")
    causes = rows(plan.out, "select detail from conversations where ending = 'chatbot'")
    assert all(cause.endswith(", in 3 tries") for (cause,) in causes)
    messages = len(texts) + endings[Ending.CHATBOT]
    assert messages < asked <= 3 * messages
    assert asked == faults.counted.total()
    assert faults.counted.keys() == {"good", *faulty.faults()}, "each fault took place"


async def test_a_key_is_nowhere_but_in_the_environment(
    make: MakePlan, answering: Answering, watcher: Watcher, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setenv("BOT_KEY", KEY)
    caplog.set_level(0)
    headers = {"Authorization": "Bearer env:BOT_KEY"}

    def tells(asked: Asked) -> faulty.Act:
        key = asked.headers["authorization"].encode()
        assert KEY.encode() in key
        acts = [said({"reply": f"your key is {key.decode()}"}), faulty.sent(key, 500), faulty.sent(key, 400)]
        return acts[min(len(raw.asked) - 1, 2)]

    async with serving(tells) as raw:
        url, request = f"{raw.url}/?token=env:BOT_KEY", {"h": "{history}", "k": "env:BOT_KEY"}
        table = {"kind": "http", "url": url, "request": request, "reply": "reply"}
        plan = make(chatbot=table | FAST | {"headers": headers, "concurrency": 1})
        outcome = await run(plan, answering(at_random), watcher, judge=False)
    assert "your key is Bearer [BOT_KEY]" in {text for c in held(outcome) for text in replies(c)}
    assert "[BOT_KEY]" in outcome.reasons["chatbot"]
    for file in (place for place in plan.out.rglob("*") if place.is_file()):
        assert KEY.encode() not in file.read_bytes(), file
    assert KEY not in caplog.text + json.dumps(manifest.read(plan.out)) + str(outcome.reasons)
