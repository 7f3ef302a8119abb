"""What is asked ahead: when it pays, along which way, and that it changes nothing but the time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from tests.judge.ahead import (
    NEXT,
    RUBRICS,
    SMALL,
    STOP,
    Counting,
    Judged,
    always,
    asked_of,
    at_random,
    judge_on,
    judged,
    plenty,
    question,
    to,
)
from vera_local.bundle import Question, Rubric
from vera_local.bundle.checks import problems
from vera_local.engine.seam import EngineDied, Request
from vera_local.judge import Mode, State, Verdict
from vera_local.judge.lookahead import Effort, Lookahead, pays

RISK = RUBRICS["suicide_risk"]
LONG = {"q1": "Yes", "q9": "Immediate danger"}
"""Answers that lead to a long path."""
SEEDS = st.integers(min_value=0, max_value=10**6)
MODES: dict[str, dict[str, Any]] = {
    "direct": {},
    "direct, all": {"evidence": True, "confidence": True},
    "reason, all": {"mode": Mode.REASON, "evidence": True, "confidence": True},
}


def test_the_small_rubric_is_sound() -> None:
    assert problems(SMALL) == []


@given(
    st.sampled_from(sorted(RUBRICS)),
    SEEDS,
    st.booleans(),
    st.sampled_from([0, 1, 3, None]),
    st.sampled_from([1, 16, 300]),
    st.sampled_from(sorted(MODES)),
    st.integers(0, 12),
    st.data(),
)
@settings(deadline=None)
def test_verdicts_places_and_ratings_are_the_same_with_and_without(
    name: str, seed: int, faulty: bool, most: int | None, ridge: int, mode: str, patience: int, data: st.DataObject
) -> None:
    async def both() -> None:
        rubric, plain = RUBRICS[name], Counting(at_random(seed, 0, faulty), ridge)
        whole = await judged(judge_on(plain, **MODES[mode]), rubric)
        engine = Counting(at_random(seed, patience, faulty), ridge)
        held, places = data.draw(st.integers(0, len(whole.recorded))), random.Random(seed)
        known = {verdict.question: verdict for _, verdict in whole.recorded[:held]}
        ahead = Lookahead(lambda: places.randint(-1, 9), most)
        again = await judged(judge_on(engine, **MODES[mode]), rubric, ahead, known)
        assert again == Judged(whole.recorded[held:], whole.ratings)
        assert len(set(engine.requests)) == len(engine.requests)
        assert not {asked_of(rubric, request).id for request in engine.requests} & known.keys()
        nothing_is_left(engine, ahead)

    asyncio.run(both())


def nothing_is_left(engine: Counting, ahead: Lookahead) -> None:
    assert engine.alive == 0 and not ahead.starting
    assert asyncio.all_tasks() == {asyncio.current_task()}


class Bounded(Lookahead):
    """Holds what is asked ahead against what the engine has in flight or is about to get."""

    def __init__(self, engine: Counting, places: int) -> None:
        super().__init__(lambda: places - engine.alive)
        self.engine, self.places, self.chosen = engine, places, 0

    def choose(self, *state: Any) -> list[Question]:
        chosen = super().choose(*state)
        assert not chosen or self.engine.alive + len(self.starting) + len(chosen) <= self.places
        self.chosen += len(chosen)
        return chosen


@given(st.integers(1, 6), st.integers(0, 20), SEEDS, st.integers(1, 9))
@settings(deadline=None, max_examples=50)
def test_no_more_is_asked_ahead_than_there_is_room_for(talks: int, places: int, seed: int, patience: int) -> None:
    """The question that a conversation has come to is asked in any case."""

    async def all_at_once() -> None:
        engine = Counting(at_random(seed, patience))
        ahead, judge = Bounded(engine, places), judge_on(engine)
        await asyncio.gather(*(judged(judge, RISK, ahead, talk=f"Ann-{n}") for n in range(talks)))
        assert engine.peak <= places + talks
        assert ahead.chosen if places > 2 * talks else places > 1 or not ahead.chosen

    asyncio.run(all_at_once())


async def test_all_of_the_room_is_used() -> None:
    engine = Counting(at_random(1, 5))
    ahead, judge = Lookahead(lambda: 8 - engine.alive), judge_on(engine)
    await asyncio.gather(*(judged(judge, RISK, ahead, talk=f"Ann-{n}") for n in range(4)))
    assert engine.peak >= 8


@pytest.mark.parametrize(("most", "peak"), [(0, 1), (1, 2), (2, 3), (None, 4)])
async def test_most_bounds_what_is_asked_ahead(most: int | None, peak: int) -> None:
    engine = Counting(always(RISK, **LONG))
    await judged(judge_on(engine), RISK, Lookahead(plenty, most))
    assert engine.peak >= peak if most is None else engine.peak == peak


async def test_without_it_questions_are_asked_in_turn_and_with_a_ridge_of_one_only_what_is_certain_is_asked_ahead() -> (
    None
):
    plain, certain = (Counting(always(RISK, **LONG), ridge=1) for _ in range(2))
    await judged(judge_on(plain), RISK, None)
    await judged(judge_on(certain), RISK, Lookahead(plenty))
    assert plain.peak == 1
    assert set(certain.requests) == set(plain.requests), "something was asked for nothing"


async def rounds(work: Callable[[Counting], Awaitable[Judged]]) -> tuple[int, Judged, Counting]:
    """How many rounds the work takes where an engine answers in each all that it holds."""
    waiting: list[asyncio.Event] = []
    usual = always(RISK, **LONG)

    async def answer(request: Request) -> Any:
        waiting.append(event := asyncio.Event())
        await event.wait()
        return usual(request)

    engine, taken = Counting(answer), 0
    task = asyncio.ensure_future(work(engine))
    while not task.done():
        for _ in range(30):
            await asyncio.sleep(0)
        taken += bool(waiting)
        while waiting:
            waiting.pop().set()
    return taken, task.result(), engine


@pytest.mark.parametrize("mode", [Mode.DIRECT, Mode.REASON])
async def test_on_the_usual_path_it_takes_a_fraction_of_the_rounds(mode: Mode) -> None:
    alone, plain, _ = await rounds(lambda engine: judged(judge_on(engine, mode=mode), RISK))
    fewer, same, _ = await rounds(lambda engine: judged(judge_on(engine, mode=mode), RISK, Lookahead(plenty)))
    assert same == plain
    assert fewer * 2 < alone


async def test_past_a_branch_what_was_asked_ahead_is_taken_back_before_the_walk_goes_on() -> None:
    usual = always(RISK, **LONG | {"q9": "Suicidal thoughts without acute danger", "q10": "Yes"})
    past = {"11", "12", "13", "14", "15"}

    async def answer(request: Request) -> Any:
        if asked_of(RISK, request).id in past:
            await asyncio.Event().wait()
        return usual(request)

    engine = Counting(answer)
    done = await judged(judge_on(engine, confidence=True), RISK, Lookahead(plenty))
    assert not past & set(done.path)
    assert {"11", "12"} <= {asked_of(RISK, request).id for request in engine.aborted} <= past
    assert engine.alive == 0


async def test_a_known_verdict_further_on_is_not_asked_ahead() -> None:
    known = {"a4": said("a4", "No")}
    engine = Counting(always(SMALL, a1="Yes"))
    done = await judged(judge_on(engine), SMALL, Lookahead(plenty), known)
    assert done.path[:3] == ["a1", "a2", "b1"] and engine.peak > 1
    assert "a4" not in {asked_of(SMALL, request).id for request in engine.requests}


async def test_what_can_still_be_reached_is_kept_and_used() -> None:
    """From a1 the usual way is a2 and a4; a walk that takes a3 instead comes to a4 all the same."""
    usual = always(SMALL, a1="No", a3="Yes")

    async def answer(request: Request) -> Any:
        if asked_of(SMALL, request).id == "a2":
            await asyncio.Event().wait()
        return usual(request)

    engine = Counting(answer)
    done = await judged(judge_on(engine), SMALL, Lookahead(plenty))
    assert done.path[:3] == ["a1", "a3", "a4"]
    ids = [asked_of(SMALL, request).id for request in engine.requests]
    assert ids[:4] == ["a1", "a2", "a4", "a3"] and ids.count("a4") == 1
    assert [asked_of(SMALL, request).id for request in engine.aborted] == ["a2"]


@given(SEEDS, st.integers(0, 60), st.sampled_from(sorted(MODES)), st.sampled_from(sorted(RUBRICS)))
@settings(deadline=None)
def test_cancelled_from_outside_it_leaves_no_task(seed: int, turns: int, mode: str, name: str) -> None:
    async def cancelled() -> None:
        engine, ahead = Counting(at_random(seed, 9)), Lookahead(plenty)
        task = asyncio.ensure_future(judged(judge_on(engine, **MODES[mode]), RUBRICS[name], ahead))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() or task.result().ratings
        nothing_is_left(engine, ahead)

    asyncio.run(cancelled())


@given(SEEDS, st.integers(0, 30), st.sampled_from(sorted(MODES)), st.sampled_from(sorted(RUBRICS)))
@settings(deadline=None)
def test_where_the_engine_dies_the_walk_ends_and_leaves_no_task(seed: int, lives: int, mode: str, name: str) -> None:
    """The others never get an answer: who waited for them would wait for ever."""

    async def dying() -> None:
        answered, left = at_random(seed, 5), lives

        async def answer(request: Request) -> Any:
            nonlocal left
            left -= 1
            if left == -1:
                raise EngineDied("gone")
            if left < -1:
                await asyncio.Event().wait()
            reply = answered(request)
            return reply if isinstance(reply, str) else await reply  # type: ignore[misc]

        engine, ahead = Counting(answer), Lookahead(plenty)
        try:
            await judged(judge_on(engine, **MODES[mode]), RUBRICS[name], ahead)
        except EngineDied as error:
            assert str(error) == "gone" and left < 0
        else:
            assert left >= 0
        nothing_is_left(engine, ahead)

    asyncio.run(dying())


async def test_an_engine_that_dies_at_a_question_asked_ahead_is_told_on_at_once() -> None:
    async def answer(request: Request) -> str:
        if asked_of(RISK, request).id == "4":
            raise EngineDied("gone")
        await asyncio.Event().wait()
        return "Yes"

    engine, ahead = Counting(answer), Lookahead(plenty)
    with pytest.raises(EngineDied, match="gone"):
        await judged(judge_on(engine), RISK, ahead)
    nothing_is_left(engine, ahead)


async def test_a_store_that_fails_ends_the_walk_and_what_it_asked_ahead() -> None:
    def full(place: int, verdict: Verdict) -> None:
        raise OSError("disk full")

    engine, ahead = Counting(at_random(1, 9)), Lookahead(plenty)
    with pytest.raises(OSError, match="disk full"):
        await judged(judge_on(engine), RISK, ahead, note=full)
    nothing_is_left(engine, ahead)


@pytest.mark.parametrize(
    ("likely", "prompt", "written", "ridge", "worth"),
    [
        (1.0, 300, 2, 1, True),  # certain: it only comes earlier
        (0.75, 250, 2, 1, False),  # 1.5 against 2 x 63
        (0.75, 250, 2, 64, False),  # 96 against 2 x 63
        (0.75, 250, 2, 128, True),  # 192 against 2 x 63
        (0.93, 250, 2, 16, False),  # 29.8 against 2 x 17.6
        (0.95, 250, 2, 16, True),  # 30.4 against 2 x 12.6
        (0.75, 250, 100, 2, False),  # 150 against 2 x 87.5
        (0.75, 250, 100, 3, True),  # 225 against 2 x 87.5
        (0.2, 250, 100, 16, False),  # 320 against 2 x 280
        (0.35, 250, 100, 16, True),  # 560 against 2 x 227.5
        (0.5, 90, 10, 20, False),  # 100 against 2 x 50: nothing gained
        (0.0, 0, 100, 300, False),
    ],
)
def test_the_rule(likely: float, prompt: int, written: int, ridge: int, worth: bool) -> None:
    assert pays(likely, Effort(prompt, written), ridge) is worth


@pytest.mark.parametrize(("walks", "worth"), [(1, True), (2, False), (12, False)])
def test_what_many_conversations_share_is_saved_by_none_alone(walks: int, worth: bool) -> None:
    """0.75 * 4 * 24 = 72 against 2 * 0.25 * (100 + 4) = 52; half of 72 is 36."""
    assert pays(0.75, Effort(100, 4), 24, walks) is worth


async def test_the_more_conversations_go_on_the_less_is_asked_ahead() -> None:
    peaks = []
    for walks in ([1], range(1000)):
        engine = Counting(always(RISK, **LONG))
        await judged(judge_on(engine), RISK, Lookahead(plenty, walks=walks.__len__))
        peaks.append(engine.peak)
    assert peaks[0] > peaks[1]


def way(ahead: Lookahead, rubric: Rubric, at: str, known: dict[str, Verdict] | None = None) -> Any:
    return approx({q.id: likely for q, likely in ahead.path(rubric, rubric.by_id[at], known or {})}, rel=1e-6)


def said(id: str, answer: str | None) -> Verdict:
    return Verdict(id, State.ANSWERED if answer else State.INVALID, answer, Mode.DIRECT)


def test_before_any_verdict_the_usual_way_is_without_findings_to_the_nearest_question() -> None:
    new = Lookahead(plenty)
    # Beside the usual way 1 can lead to 3 or end the walk, 9 can lead to 16, and from 16 on it is as from 9.
    assert way(new, RISK, "1") == {"2": 0.75, "4": 0.75**2, "3": 0.125}
    other = {str(n): 0.125 * 0.75 ** (n - 16) for n in range(16, 23)}
    assert way(new, RISK, "9") == {str(n): 0.75 ** (n - 9) for n in range(10, 16)} | other | {"23": 1.0, "30": 1.0}
    assert way(new, RISK, "23") == {str(n): 0.75 ** (n - 23) for n in range(24, 30)} | {"30": 1.0}
    assert way(new, RISK, "29") == {"30": 1.0}, "the next dimension begins in any case"
    ids = [q.id for q in RUBRICS["psychosis"].questions]
    assert way(new, RUBRICS["psychosis"], ids[0]) == dict.fromkeys(ids[1:], 1.0)


def test_a_finding_is_not_usual_where_there_is_another_answer() -> None:
    near, far = question("x1", "X", Yes=("high", NEXT), No=to("x3")), question("x2", "X", Yes=NEXT, No=NEXT)
    last = question("x3", "X", Yes=("medium", NEXT), No=("high", STOP))
    flow = replace(SMALL, dimensions=("X",), questions=(near, far, last))
    assert way(Lookahead(plenty), flow, "x1") == {"x3": 1.0, "x2": 0.25}, "both ways lead to x3 in the end"
    assert way(Lookahead(plenty), flow, "x2") == {"x3": 1.0}


def test_what_no_model_is_asked_is_passed_over_at_no_cost() -> None:
    new = Lookahead(plenty)
    assert way(new, SMALL, "b1") == {"b2": 1.0, "b4": 0.75}
    # a1 leads to a2 (3 of 4), to a3 (1/2 of 4) or ends; a2 and a3 lead to a4 3 times of 4.
    assert way(new, SMALL, "a1") == {"a2": 0.75, "a3": 0.125, "a4": 0.875 * 0.75}
    assert way(new, SMALL, "a1", {"a2": said("a2", "No")}) == {"a3": 0.125, "a4": 0.75 + 0.125 * 0.75}
    assert way(new, SMALL, "a1", {"a2": said("a2", "Yes")}) == {"a3": 0.125, "a4": 0.125 * 0.75}
    assert way(new, SMALL, "a1", {"a2": said("a2", None)}) == {"a3": 0.125, "a4": 0.125 * 0.75}


async def test_after_many_conversations_the_way_is_the_one_that_the_judge_usually_takes() -> None:
    ahead = Lookahead(plenty)
    for n in range(20):
        await judged(judge_on(Counting(always(SMALL, a1="No", a3="Yes"))), SMALL, ahead, talk=f"Ann-{n}")
    # Of a1's ways those to a3 and to the end counted 1/2 each beforehand, that to a2 3; of a3's, that to a4 3 of 4.
    found = {q.id: likely for q, likely in ahead.path(SMALL, SMALL.by_id["a1"], {})}
    assert found["a3"] == approx(20.5 / 24)
    assert found["a4"] == approx(20.5 / 24 * 23 / 24 + 3 / 24 * 3 / 4)
    assert {id for id, likely in found.items() if likely > 0.5} == {"a3", "a4", "b2", "c1"}, "beyond the dimension, too"
    engine = Counting(always(SMALL, a1="No", a3="Yes"))
    walked = await judged(judge_on(engine), SMALL, ahead)
    assert {asked_of(SMALL, request).id for request in engine.requests} == {*walked.path} - {"b1"}
    assert engine.peak == 5


def test_a_missing_verdict_is_learned_by_where_it_led() -> None:
    ahead, a1 = Lookahead(plenty), SMALL.by_id["a1"]
    for _ in range(20):
        ahead.learn(a1, said("a1", None), None)
    assert max(likely for _, likely in ahead.path(SMALL, a1, {})) < 0.15


async def test_only_verdicts_that_were_recorded_are_learned() -> None:
    """Those past a branch are dropped: the walk takes a3, while a2 was asked ahead and answered."""
    ahead, engine = Lookahead(plenty), Counting(always(SMALL, a1="No", a3="No"))
    done = await judged(judge_on(engine), SMALL, ahead)
    assert done.path == ["a1", "a3", "c1"]
    assert "a2" in {asked_of(SMALL, request).id for request in engine.requests}
    assert not ahead._followed["a2"]
    assert ahead._followed["a3"] == {"c1": 1}


def test_the_effort_of_a_question_is_its_own_prompt_and_all_that_it_writes() -> None:
    direct, judge = Lookahead(plenty), judge_on(Counting(always(SMALL)))
    effort = direct.effort(judge, SMALL.by_id["a2"])
    assert effort == Effort(len(judge.asked(SMALL.by_id["a2"])) / 4, 2)
    nine = RISK.by_id["9"]
    located = direct.effort(replace(judge, evidence=True), nine)
    bare = Lookahead(plenty).effort(judge, nine)
    assert located.written == bare.written + 6 and located.prompt > bare.prompt


@pytest.mark.parametrize(
    ("mode", "ridge", "verdicts", "ahead"),
    [
        (Mode.DIRECT, 16, 0, []),
        (Mode.DIRECT, 16, 30, ["24", "25"]),
        (Mode.DIRECT, 300, 0, ["24", "25", "26"]),
        (Mode.DIRECT, 300, 30, [*map(str, range(24, 30)), "31", "32", "33"]),
        (Mode.REASON, 16, 0, ["24", "25"]),
        (Mode.REASON, 16, 30, [*map(str, range(24, 30)), "31", "32", "33", "34"]),
    ],
)
def test_what_it_comes_to_in_a_shipped_rubric(mode: Mode, ridge: int, verdicts: int, ahead: list[str]) -> None:
    looking, judge = Lookahead(plenty), judge_on(Counting(always(RISK), ridge), mode=mode)
    reasons = "" if mode is Mode.DIRECT else "x" * 400
    for id in map(str, range(23, 30)):
        for _ in range(verdicts):
            following = RISK.follow(RISK.by_id[id], RISK.by_id[id].option("No"))
            looking.learn(RISK.by_id[id], replace(said(id, "No"), rationale=reasons), following)
    # 30, where the next dimension begins, is asked in any case.
    assert [q.id for q in looking.choose(judge, RISK, RISK.by_id["23"], {}, ())] == ["30", *ahead]


def test_how_long_reasoning_gets_is_learned_from_the_verdicts() -> None:
    ahead, judge = Lookahead(plenty), judge_on(Counting(always(SMALL)), mode=Mode.REASON)
    a2 = SMALL.by_id["a2"]
    assert ahead.effort(judge, a2).written == 2 + 40
    for _ in range(3):
        ahead.learn(a2, replace(said("a2", "No"), rationale="x" * 32), SMALL.by_id["a4"])
    assert ahead.effort(judge, a2).written == 2 + (40 + 3 * 8) / 4


def test_an_automatic_answer_teaches_nothing_of_how_long_reasoning_gets() -> None:
    ahead, judge = Lookahead(plenty), judge_on(Counting(always(SMALL)), mode=Mode.REASON)
    before = ahead.effort(judge, SMALL.by_id["a2"])
    ahead.learn(SMALL.by_id["b1"], Verdict("b1", State.ANSWERED, "Always", Mode.AUTO), SMALL.by_id["b2"])
    assert ahead.effort(judge, SMALL.by_id["a2"]) == before


async def test_what_is_asked_in_any_case_is_asked_at_once_beyond_the_dimension_too() -> None:
    """Each criterion of the psychosis study is a dimension of its own, and no answer leads past one."""
    rubric = RUBRICS["psychosis"]
    engine = Counting(at_random(1, 5), ridge=1)
    await judged(judge_on(engine), rubric, Lookahead(plenty))
    assert engine.peak == len([q for q in rubric.questions if not q.auto])
    assert len(engine.requests) == engine.peak
