"""Runs on several OpenAI-compatible servers, of which some are lost or fail: they end as a run on one does."""

from __future__ import annotations

import io
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from tests.answers import at_random
from tests.chatbot.serving import Served, Sessions
from tests.kept import must_be_the_same
from tests.run.boxes import REQUESTS, URLS, Boxes, Counting
from tests.run.conftest import MakePlan, Opened
from tests.run.held import held
from tests.run.test_chatbots import KEY, replies, sessions_table
from vera_local.engine import replicas, server
from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import Engine, EngineDied, EngineLost, Limits, Request
from vera_local.errors import UserError
from vera_local.run import Opening, Plan, Watcher, judge_run, run
from vera_local.run import manifest as manifests

Answering = Callable[..., Opened]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PAUSES", (0.0, 0.0))


@pytest.fixture
def boxes() -> Boxes:
    return Boxes()


@pytest.fixture
def serve(make: MakePlan) -> MakePlan:
    """A plan whose simulator and judge are served by so many boxes."""

    def plan(number: int, **more: Any) -> Plan:
        role = {"model": "m", "url": list(URLS[:number]), "requests": REQUESTS}
        direct = {"confidence": False, "evidence": False}
        return make(**{"simulator": role, "judge": [role | direct], "personas": 9, "turns": 6, **more})

    return plan


@pytest.fixture
async def calm(tmp_path: Path, serve: MakePlan, watcher: Watcher) -> Path:
    """A run on one server."""
    plan = serve(1, out=tmp_path / "calm")
    await run(plan, Boxes(), watcher)
    return plan.out


@pytest.fixture
def told() -> Iterator[io.StringIO]:
    yield io.StringIO()


async def test_each_conversation_stays_on_one_server_and_no_server_gets_more_than_it_takes(
    serve: MakePlan, boxes: Boxes, watcher: Watcher, calm: Path
) -> None:
    plan = serve(3)
    await run(plan, boxes, watcher)
    must_be_the_same(plan.out, calm)
    where: defaultdict[tuple[str, bool], set[str]] = defaultdict(set)
    for url, box in boxes.at.items():
        assert 1 < box.peak <= REQUESTS
        for body in box.heard:
            judges, prompt = "structured_outputs" in body, str(body["messages"])
            if said := re.search(r"message 0\.\d+", prompt):
                where[said.group(), judges].add(url)
    assert len(where) == 2 * 9
    assert {len(urls) for urls in where.values()} == {1}
    assert {url for urls in where.values() for url in urls} == set(URLS)


@pytest.mark.parametrize(
    ("moment", "status"), [*((moment, None) for moment in random.Random(3).sample(range(3, 13), 4)), (6, 503), (9, 429)]
)
async def test_a_server_that_is_lost_is_done_without(
    serve: MakePlan, boxes: Boxes, calm: Path, moment: int, status: int | None
) -> None:
    plan, watcher = serve(3), Counting()
    boxes.at[URLS[1]].lives, boxes.at[URLS[1]].status = moment, status
    outcome = await run(plan, boxes, watcher)
    must_be_the_same(plan.out, calm)
    assert outcome.restarts == 0
    told = watcher.told.getvalue()
    assert told.count(f"the server at {URLS[1]}/ no longer answers") == 1
    assert "what was under way there goes on elsewhere (2 of 3 left)" in told
    assert re.search(r"done in .*, \d+ moved to other engines", told)
    watcher.must_have_counted_right()


@pytest.mark.parametrize("moment", random.Random(8).sample(range(4, 14), 3))
async def test_a_server_that_is_lost_while_it_judges_is_done_without(
    serve: MakePlan, boxes: Boxes, watcher: Watcher, calm: Path, moment: int
) -> None:
    plan, counting = serve(2), Counting()
    await run(plan, boxes, watcher, judge=False)
    boxes.first.lives = moment
    await judge_run(plan, boxes, counting)
    must_be_the_same(plan.out, calm)
    counting.must_have_counted_right()


SICK = {
    "fails": httpx.Response(500),
    "forgot its model": httpx.Response(404, json={"error": {"message": "The model `m` does not exist."}}),
    "is replaced by a page": httpx.Response(200, text="<html>maintenance</html>"),
}


@pytest.mark.parametrize("how", SICK)
async def test_a_server_that_lists_its_model_and_answers_nothing_is_done_without(
    serve: MakePlan, boxes: Boxes, calm: Path, how: str
) -> None:
    plan, watcher = serve(3), Counting()
    # Two trials and one message: while three more fail, none of its conversations can end.
    boxes.at[URLS[1]].lives, boxes.at[URLS[1]].sick = 3, SICK[how]
    await run(plan, boxes, watcher)
    must_be_the_same(plan.out, calm)
    assert watcher.told.getvalue().count(f"the server at {URLS[1]} failed at 3 requests in a row") == 1
    watcher.must_have_counted_right()


async def test_a_server_that_answers_nothing_while_it_judges_is_done_without(
    serve: MakePlan, boxes: Boxes, watcher: Watcher, calm: Path
) -> None:
    plan, counting = serve(2), Counting()
    await run(plan, boxes, watcher, judge=False)
    boxes.first.lives, boxes.first.sick = 5, SICK["fails"]
    await judge_run(plan, boxes, counting)
    must_be_the_same(plan.out, calm)
    counting.must_have_counted_right()


async def test_a_new_judge_begins_only_where_each_of_its_servers_answers_its_trial(
    serve: MakePlan, boxes: Boxes, watcher: Watcher
) -> None:
    plan = serve(2)
    await run(plan, boxes, watcher, judge=False)
    boxes.at[URLS[1]].lives, boxes.at[URLS[1]].sick = 0, SICK["forgot its model"]
    with pytest.raises(UserError, match="The model `m` does not exist"):
        await judge_run(plan, boxes, watcher)


@pytest.mark.parametrize("seed", range(4))
async def test_of_three_servers_two_can_be_lost(
    serve: MakePlan, boxes: Boxes, watcher: Watcher, calm: Path, seed: int
) -> None:
    plan, draw = serve(3), random.Random(seed)
    for url in draw.sample(URLS, 2):
        boxes.at[url].lives = draw.randrange(3, 13)
    await run(plan, boxes, watcher)
    must_be_the_same(plan.out, calm)


async def test_with_the_last_one_the_run_ends_and_goes_on_when_one_answers(
    serve: MakePlan, boxes: Boxes, told: io.StringIO, calm: Path
) -> None:
    plan, watcher = serve(2), Watcher(Console(file=told, width=400))
    boxes.at[URLS[0]].lives = boxes.at[URLS[1]].lives = 12
    with pytest.raises(EngineDied, match="no longer answers"):
        await run(plan, boxes, watcher)
    boxes.at[URLS[1]].lives = None
    assert boxes.first.lives is not None and boxes.first.lives <= 0
    await run(plan, boxes, watcher)
    assert f"no server answers at {URLS[0]} (connection refused)" in told.getvalue()
    assert "; going on without it" in told.getvalue()
    must_be_the_same(plan.out, calm)


async def test_a_server_that_comes_back_is_given_conversations_again(
    serve: MakePlan, boxes: Boxes, told: io.StringIO, calm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "PAUSES", (0.01,))
    plan = serve(2)
    boxes.first.lives = 6

    class Reviving(Watcher):
        def say(self, line: str) -> None:
            super().say(line)
            if "no longer answers" in line:
                boxes.first.lives, boxes.first.heard[:] = None, []

    await run(plan, boxes, Reviving(Console(file=told, width=400)))
    assert f"the server at {URLS[0]} answers again and is given conversations again" in told.getvalue()
    assert boxes.first.heard
    must_be_the_same(plan.out, calm)


async def test_a_new_run_begins_only_where_all_answer_and_serve_the_same(
    serve: MakePlan, boxes: Boxes, watcher: Watcher
) -> None:
    plan = serve(2)
    boxes.at[URLS[1]].lives = 0
    with pytest.raises(
        UserError, match=rf"^no server answers at {URLS[1]} \(connection refused\); start it or correct"
    ):
        await run(plan, boxes, watcher)
    boxes.at[URLS[1]].lives, boxes.at[URLS[1]].context = None, 50
    with pytest.raises(UserError, match=f"^the server at {URLS[1]} serves the model with a context of 50 tokens"):
        await run(plan, boxes, watcher)
    assert not plan.out.exists()


async def test_a_new_judge_begins_only_where_all_its_servers_answer(
    serve: MakePlan, boxes: Boxes, watcher: Watcher
) -> None:
    plan = serve(2)
    await run(plan, boxes, watcher, judge=False)
    boxes.at[URLS[1]].lives = 0
    with pytest.raises(UserError, match=f"^no server answers at {URLS[1]}"):
        await judge_run(plan, boxes, watcher)
    entered = manifests.read(plan.out)
    assert entered is not None and entered["judges"] == {}
    boxes.at[URLS[1]].lives = None
    await judge_run(plan, boxes, watcher)


async def test_servers_are_added_and_left_out_between_two_starts(
    serve: MakePlan, boxes: Boxes, watcher: Watcher, calm: Path
) -> None:
    """A list of servers goes by the first one; what they answer is the same whichever it is."""
    boxes.first.lives = 12
    with pytest.raises(EngineDied):
        await run(serve(1), boxes, watcher)
    plan = serve(3)
    await run(plan, boxes, watcher)
    must_be_the_same(plan.out, calm)


@pytest.mark.parametrize("moment", random.Random(5).sample(range(20), 5))
async def test_a_lost_engine_of_this_machine_is_done_without(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path, moment: int
) -> None:
    """One of two dies at a request, and whatever is asked of it later fails, too."""
    limits = Limits(100_000, 1_000_000, 8, ridge=16)
    undisturbed = make(out=tmp_path / "undisturbed", personas=6)
    await run(undisturbed, answering(at_random, limits), watcher)

    async def opener(opening: Opening) -> Engine:
        number, asked = len(engines), 0

        def handler(request: Request) -> str:
            nonlocal asked
            asked += 1
            if number == 1 and asked > moment + 8:
                raise EngineLost("vLLM's engine process ended")
            return at_random(request)

        engines.append(FakeEngine(handler, limits))
        return engines[-1]

    engines: list[FakeEngine] = []
    plan = make(replicas=2, personas=6)
    assert (await run(plan, opener, watcher)).restarts == 0
    assert len(engines) == 2 and all(engine.closed for engine in engines)
    must_be_the_same(plan.out, undisturbed.out)


async def test_a_conversation_that_moves_begins_anew_where_the_chatbot_keeps_its_history(
    serve: MakePlan, boxes: Boxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its session ended when it moved, so a reply must not come from one that knows nothing of it."""
    monkeypatch.setenv("BOT_KEY", KEY)
    sessions = Sessions()
    served = Served(sessions.app)
    try:
        plan = serve(2, chatbot=sessions_table(served.url))
        boxes.at[URLS[1]].lives = 5
        watcher = Counting()
        outcome = await run(plan, boxes, watcher)
    finally:
        served.stop()
    watcher.must_have_counted_right()
    assert [[text.split()[1] for text in replies(c)] for c in held(outcome)] == [["1", "2", "3"]] * 9
    assert len(sessions.heard) > 27, "some had to be held again"
