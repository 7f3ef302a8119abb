"""A run that is likened to an earlier one asks, and takes, what that one did."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.run.test_rehearsal import CHATBOT_MODEL, JUDGE_MODEL, MODELS, PERSONA, Answers, no_probes, words
from vera_local.engine.machine import Machine, this_machine
from vera_local.engine.seam import NO_USAGE, Request
from vera_local.errors import UserError
from vera_local.report.usage import SessionRow, StageRow, UsageRow
from vera_local.run import Plan, Watcher, run
from vera_local.run.forecast import ONE_BY_ONE, SIDE_BY_SIDE, Forecast, forecast
from vera_local.run.likeness import Factor, Likeness, _paces, likeness
from vera_local.run.paper import Work
from vera_local.run.rehearsal import JUDGE, JUDGING, SIMULATOR, TALK
from vera_local.run.store import Store

MakePlan = Callable[..., Plan]
PLACES = {PERSONA: (TALK, SIMULATOR), CHATBOT_MODEL: (TALK, "chatbot"), JUDGE_MODEL: (JUDGING, JUDGE)}
SECONDS = {TALK: 120.0, JUDGING: 30.0}

__all__ = ["no_probes"]


def at_random(request: Request, options: list[str]) -> str:
    return random.Random(request.sampling.seed).choice(options)


def write_account(folder: Path, answers: Answers) -> tuple[UsageRow, ...]:
    """What was asked, with stages that took their time; the account that the run wrote itself gives way to it."""
    with Store.open(folder) as store:
        for table in ("usage", "stages", "sessions"):
            store._db.execute(f"delete from {table}")
        session = store.used.begin("2026-01-01T00:00:00+00:00")
        # A stage can stand open with nothing to do.
        stages = [StageRow(session, stage, 2 * seconds, seconds) for stage, seconds in SECONDS.items()]
        rows = [
            UsageRow(session, *PLACES[m], m, t.requests, 0, 0, t.usage, t.distinct, NO_USAGE, 1.0)
            for m, t in answers.tallies.items()
        ]
        busy = sum(SECONDS.values())
        store.used.save(SessionRow(session, "2026-01-01T00:00:00+00:00", busy + 60, busy, None, None), stages, rows)
        return tuple(rows)


@pytest.fixture
def held(make: MakePlan, watcher: Watcher) -> Callable[..., object]:
    """Hold a run and give its plan and its account."""

    async def hold(**flags: object) -> tuple[Plan, tuple[UsageRow, ...]]:
        plan, answers = make(**{"personas": 12, "turns": 6, **MODELS, **flags}), Answers(at_random)
        await run(plan, answers, watcher)
        return plan, write_account(plan.out, answers)

    return hold


async def foretold(plan: Plan, like: Likeness, machine: Machine | None = None) -> Forecast:
    return await forecast(plan, words, machine or this_machine(), None, like)


async def test_the_same_plan_is_foretold_as_it_was(held: Callable[..., object]) -> None:
    plan, rows = await held()  # type: ignore[misc]
    told = await foretold(plan, await likeness(plan.out, words))
    lines = {line.part.place: line.part.work for line in told.lines}
    for row in rows:
        work = lines[row.stage, row.role, row.model]  # type: ignore[index]
        assert work.requests == pytest.approx(row.requests, rel=0.01)
        assert work.prompt == pytest.approx(row.usage.prompt, rel=0.01)
        assert work.computed == pytest.approx(row.usage.computed, rel=0.01)
        assert work.output == pytest.approx(row.usage.output, rel=0.01)
    assert {s.name: s.seconds for s in told.stages} == pytest.approx(SECONDS, rel=0.01)
    assert told.seconds == pytest.approx(150, rel=0.01)
    assert told.cost(3.6) == pytest.approx(0.15, rel=0.01)
    assert all(stage.measured for stage in told.stages)


async def test_answers_that_were_seen_foretell_the_walks_without_a_correction(held: Callable[..., object]) -> None:
    plan, _ = await held(judge_confidence=False)  # type: ignore[misc]
    factor = (await likeness(plan.out, words)).factors[JUDGING, JUDGE, JUDGE_MODEL]  # type: ignore[index]
    assert factor.requests == pytest.approx(1, rel=1e-6)
    assert factor.prompt == pytest.approx(1, rel=0.05)


async def test_more_conversations_take_more_in_proportion(held: Callable[..., object], make: MakePlan) -> None:
    plan, _ = await held()  # type: ignore[misc]
    like = await likeness(plan.out, words)
    once = await foretold(plan, like)
    thrice = await foretold(make(**{"personas": 12, "turns": 6, "repeats": 3, **MODELS}), like)
    for one, three in zip(once.lines, thrice.lines, strict=True):
        assert three.part.work.requests == pytest.approx(3 * one.part.work.requests)
        assert three.part.work.output == pytest.approx(3 * one.part.work.output)
    assert thrice.seconds == pytest.approx(450, rel=0.02)
    more = await foretold(make(**{"personas": 48, "turns": 6, **MODELS}), like)
    assert more.seconds == pytest.approx(600, rel=0.1), "other personas have other prompts"


async def test_another_judge_is_not_foretold_at_this_ones_pace(held: Callable[..., object], make: MakePlan) -> None:
    plan, _ = await held()  # type: ignore[misc]
    like = await likeness(plan.out, words)
    told = await foretold(make(**{"personas": 12, "turns": 6, **MODELS, "judge": ["qwen3-14b"]}), like)
    assert {stage.name: stage.measured for stage in told.stages} == {TALK: True, JUDGING: False}
    assert told.seconds is None


async def test_another_machine_has_another_pace(held: Callable[..., object]) -> None:
    plan, _ = await held()  # type: ignore[misc]
    like = await likeness(plan.out, words)
    told = await foretold(plan, like, Machine("cuda", "H200", 141 * 10**9, 1))
    assert not any(stage.measured for stage in told.stages)
    assert any("pace" in sentence for sentence in told.assumptions)


async def test_stages_side_by_side_take_less_than_their_sum(held: Callable[..., object]) -> None:
    plan, _ = await held()  # type: ignore[misc]
    with Store.open(plan.out) as store:
        session = store.used.begin("2026-01-02T00:00:00+00:00")
        stages = [StageRow(session, stage, seconds, seconds) for stage, seconds in SECONDS.items()]
        store.used.save(SessionRow(session, "2026-01-02T00:00:00+00:00", 120, 0, None, None), stages, [])
    like = await likeness(plan.out, words)
    assert like.overlap == pytest.approx(0.5)
    told = await foretold(plan, like)
    assert {s.name: s.seconds for s in told.stages} == pytest.approx({TALK: 240, JUDGING: 60}, rel=0.02)
    assert told.seconds == pytest.approx(150, rel=0.02)
    assert SIDE_BY_SIDE in told.assumptions and ONE_BY_ONE not in told.assumptions


async def test_where_a_chatbot_is_waited_for_the_waiting_counts(held: Callable[..., object], tmp_path: Path) -> None:
    plan, rows = await held()  # type: ignore[misc]
    with Store.open(plan.out) as store:
        paces, overlap = _paces(store.used, rows, waits=True)
    tokens = sum(row.usage.computed + row.usage.output for row in rows if row.stage == TALK)
    assert paces[TALK].seconds_per_token * tokens == pytest.approx(2 * SECONDS[TALK])
    assert overlap == pytest.approx(210 / 300)


def test_no_more_is_computed_than_is_asked() -> None:
    """As where an engine told no cached tokens, and longer conversations would share more of what they ask."""
    work = Factor(requests=1, prompt=2, computed=3, output=1).times(Work(1, prompt=10, computed=9, output=5))
    assert work == Work(1, prompt=20, computed=20, output=5)
    assert work.cached == 0


async def test_a_run_of_another_bundle_is_refused(held: Callable[..., object], make: MakePlan) -> None:
    plan, _ = await held()  # type: ignore[misc]
    like = await likeness(plan.out, words)
    with pytest.raises(UserError, match=r"is a run of suicide_risk \S+ and this would be one of psychosis"):
        await foretold(make(bundle="psychosis", chatbot=MODELS["chatbot"], turns=2), like)


async def test_a_run_without_an_account_tells_nothing(make: MakePlan, watcher: Watcher, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no run"):
        await likeness(tmp_path, words)
    plan = make(turns=2, **MODELS)
    await run(plan, Answers(), watcher)
    with Store.open(plan.out) as store:
        store._db.execute("delete from usage")
    with pytest.raises(UserError, match="kept no account"):
        await likeness(plan.out, words)
