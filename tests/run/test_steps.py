"""The order of the work of several runs: each model is loaded as seldom as can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from vera_local.engine.placement import Residency
from vera_local.run import Plan
from vera_local.run.steps import Grouping, Step, chatbot_of, loadings, parts_of, speakers_of, steps_of
from vera_local.run.wanted import Left, Wanted, left_of

MakePlan = Callable[..., Plan]
A, B, S, T, JUDGE = "qwen3-8b", "qwen3-32b-fp8", "qwen3-14b", "qwen3-14b-awq", "smollm2-135m-instruct"
SERVED = {"kind": "openai", "url": "http://127.0.0.1:9/v1", "model": "served"}


def lefts(make: MakePlan, chatbots: Iterable[Any], simulators: Iterable[str], *judges: str) -> list[Left]:
    """All that is to do in a new run for each chatbot with each simulator."""
    plans = [
        make(out=Path(f"/nowhere/{n}"), chatbot=chatbot, simulator=[simulator], judge=list(judges))
        for n, (chatbot, simulator) in enumerate(product(chatbots, simulators))
    ]
    return [left_of(Wanted(plan), None) for plan in plans]


def told(steps: Iterable[Step]) -> list[tuple[str, ...]]:
    return [tuple(sorted(key.name for key in step.keys)) for step in steps]


def loaded(steps: list[Step], residency: Residency = Residency.RELOAD) -> Counter[str]:
    return Counter({key.name: times for key, times in loadings(steps, residency).items()})


def test_engines_that_are_awake_together_have_one_step_for_all(make: MakePlan) -> None:
    left = lefts(make, [A, B], [S, T], JUDGE)
    (step,) = steps_of(left, Residency.TOGETHER, chatbot_of)
    assert step.parts == tuple(left)
    assert loaded([step], Residency.TOGETHER) == dict.fromkeys((A, B, S, T, JUDGE), 1)
    assert steps_of([], Residency.TOGETHER, chatbot_of) == []


def test_else_all_conversations_come_first_by_chatbot_and_then_each_judge(make: MakePlan) -> None:
    steps = steps_of(lefts(make, [A, B], [S, T], JUDGE, A), Residency.RELOAD, chatbot_of)
    talks = [step for step in steps if step.talks]
    assert told(talks) == [tuple(sorted((A, S, T))), tuple(sorted((B, S, T)))]
    assert [len(step.parts) for step in steps] == [2, 2, 4, 4]
    assert told(steps[2:]) == [(JUDGE,), (A,)]
    assert all(not part.groups for step in talks for part in step.parts)
    assert all(not part.talks for step in steps[2:] for part in step.parts)
    assert loaded(steps) == {B: 1, S: 1, T: 1, JUDGE: 1, A: 2}


def test_what_is_open_is_used_before_anything_is_closed(make: MakePlan) -> None:
    """A simulator that also judges goes on to judge before others come."""
    steps = steps_of(lefts(make, [A], [S], JUDGE, S), Residency.RELOAD, chatbot_of)
    assert told(steps) == [tuple(sorted((A, S))), (S,), (JUDGE,)]
    assert loaded(steps) == dict.fromkeys((A, S, JUDGE), 1)


def test_of_pairs_each_shares_one_engine_with_the_one_before_it(make: MakePlan) -> None:
    steps = steps_of(lefts(make, [A, B], [S, T], JUDGE), Residency.RELOAD, speakers_of)
    assert told(steps[:-1]) == [tuple(sorted(pair)) for pair in ((A, S), (A, T), (B, T), (B, S))]
    assert loaded(steps) == {A: 1, B: 1, S: 2, T: 1, JUDGE: 1}


def test_chatbots_elsewhere_take_no_step_of_their_own(make: MakePlan) -> None:
    others = [SERVED, SERVED | {"model": "another"}]
    steps = steps_of(lefts(make, others, [S], JUDGE), Residency.RELOAD, chatbot_of)
    assert told(steps) == [(S,), (JUDGE,)]
    assert len(steps[0].parts) == 2


@pytest.mark.parametrize(("grouping", "stages"), [(chatbot_of, 2), (speakers_of, 4)])
def test_engines_that_never_work_for_each_other_have_other_stages(
    make: MakePlan, grouping: Grouping, stages: int
) -> None:
    parts = list(parts_of(lefts(make, [A, B], [S, T], JUDGE), grouping))
    talks = {stage: {p.player.profile.name for p in parts if p.stage == stage} for stage in {p.stage for p in parts}}
    assert talks.pop(None) == {JUDGE}
    assert len(talks) == stages
    assert not any({A, B} <= names for names in talks.values())
