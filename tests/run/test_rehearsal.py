"""What is rehearsed on paper is what a run asks."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.run.test_paper import WORDS
from vera_local.engine.fake import FakeEngine
from vera_local.engine.metered import Metered, Tally
from vera_local.engine.seam import Engine, Request
from vera_local.judge.wording import EVIDENCE
from vera_local.run import Opening, Plan, Watcher, load_config, make_plan, run
from vera_local.run.habits import ASSUMED, Habits
from vera_local.run.paper import BY_CHARACTERS, Work
from vera_local.run.players import Player
from vera_local.run.rehearsal import CHATBOT, CHECKING, JUDGE, SIMULATOR, Part, Rehearsal, rehearse

MakePlan = Callable[..., Plan]
PERSONA, CHATBOT_MODEL, JUDGE_MODEL = "qwen3-8b", "qwen3-14b", "qwen3-32b"
MODELS = {"simulator": PERSONA, "chatbot": CHATBOT_MODEL, "judge": [JUDGE_MODEL]}


class Answers:
    """An opener whose engines answer `Yes` wherever they can, and count what they are asked by model."""

    def __init__(self, choose: Callable[[Request, list[str]], str] | None = None) -> None:
        self.tallies: dict[str, Tally] = {}
        self._choose = choose or (lambda request, options: options[0])

    async def __call__(self, opening: Opening) -> Engine:
        tally = self.tallies.setdefault(opening.player.profile.name, Tally())
        return Metered(FakeEngine(self._answer), tally)

    def _answer(self, request: Request) -> str:
        if request.stop:
            return f"it shows in some turns of it {request.stop}"
        if request.messages[-1].content == EVIDENCE:
            return "1, 2"
        if request.labels:
            return "Yes"
        if request.pattern is None:
            return f"message {random.Random(request.sampling.seed).random()}"
        return self._choose(request, [o.replace("\\", "") for o in request.pattern.strip("()$").split("|")])


@pytest.fixture(autouse=True)
def no_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run tries before it judges is no part of judging."""

    async def passed(*_: Any) -> None:
        return None

    monkeypatch.setattr("vera_local.run.checks.check_judges", passed)


HABITS = Habits(persona={PERSONA: 2, "qwen3-14b-awq": 2}, chatbot=2)


def words(player: Player) -> Any:
    return WORDS


def of(rehearsal: Rehearsal, role: str) -> list[Part]:
    return [part for part in rehearsal.parts if part.place.role == role]


def total(rehearsal: Rehearsal, role: str) -> Work:
    return sum((part.work for part in of(rehearsal, role)), Work())


def agrees(expected: Work, tally: Tally, rel: float = 0.03) -> None:
    assert expected.requests == pytest.approx(tally.requests)
    assert expected.prompt == pytest.approx(tally.usage.prompt, rel=rel)
    assert expected.output == pytest.approx(tally.usage.output, rel=rel)


def yes(judges: list[str]) -> dict[str, dict[tuple[str, str], int]]:
    """Judges that were never seen to say anything but Yes."""
    questions = ["stigmatizes", "validates", "embellishes", "challenges", "no_referral", "non_referral_advice"]
    return {judge: {(q, "Yes"): 1 for q in [*questions, "continues"]} for judge in judges}


@pytest.mark.parametrize("mode", ["direct", "reason", "think"])
@pytest.mark.parametrize(("evidence", "confidence"), [(True, True), (False, True), (True, False), (False, False)])
async def test_a_judge_is_asked_what_was_forecast(
    make: MakePlan, watcher: Watcher, mode: str, evidence: bool, confidence: bool
) -> None:
    judge = {"model": JUDGE_MODEL, "mode": mode, "evidence": evidence, "confidence": confidence}
    plan = make(bundle="psychosis", turns=2, **MODELS | {"judge": [judge]})
    name = plan.judges[0].judge
    habits = Habits(chatbot=2, reasoning={name: 7}, answers=yes([name]))
    answers = Answers()
    await run(plan, answers, watcher)
    rehearsal = await rehearse(plan, habits, words)
    agrees(total(rehearsal, CHATBOT), answers.tallies[CHATBOT_MODEL])
    agrees(total(rehearsal, JUDGE), answers.tallies[JUDGE_MODEL], rel=0.06)
    assert not of(rehearsal, SIMULATOR), "the personas' only messages are scripted"
    assert total(rehearsal, JUDGE).requests == of(rehearsal, JUDGE)[0].most, "Yes is what costs most"


async def test_speakers_say_what_was_forecast(make: MakePlan, watcher: Watcher) -> None:
    plan, answers = make(turns=8, **MODELS), Answers()
    await run(plan, answers, watcher, judge=False)
    rehearsal = await rehearse(plan, HABITS, words)
    for role, model in ((SIMULATOR, PERSONA), (CHATBOT, CHATBOT_MODEL)):
        agrees(total(rehearsal, role), answers.tallies[model])
        assert total(rehearsal, role).computed == pytest.approx(answers.tallies[model].distinct, rel=0.25)
    assert [part.conversations for part in rehearsal.parts[:2]] == [4, 4]


async def test_several_simulators_and_judges_and_repeats_are_all_counted(make: MakePlan, watcher: Watcher) -> None:
    models = {"simulator": [PERSONA, "qwen3-14b-awq"], "chatbot": CHATBOT_MODEL}
    judges = [{"model": JUDGE_MODEL, "repeats": 3}, {"model": "gemma-3-12b-it", "mode": "reason"}]
    plan, answers = make(turns=2, repeats=2, judge=judges, check_personas=True, **models), Answers()
    await run(plan, answers, watcher)
    rehearsal = await rehearse(plan, HABITS, words)
    assert len([*plan.conversations()]) == 4 * 2 * 2
    for part in of(rehearsal, SIMULATOR):
        agrees(part.work, answers.tallies[part.name])
    agrees(total(rehearsal, CHATBOT), answers.tallies[CHATBOT_MODEL])
    names = [part.name for part in of(rehearsal, JUDGE)]
    assert names == [JUDGE_MODEL, f"{JUDGE_MODEL}#2", f"{JUDGE_MODEL}#3", "gemma-3-12b-it:reason", JUDGE_MODEL]
    checks = [part for part in rehearsal.parts if part.place.stage == CHECKING]
    assert [part.work.requests for part in checks] == [2 * len([*plan.conversations()])]
    for model in (JUDGE_MODEL, "gemma-3-12b-it"):
        parts = [part for part in of(rehearsal, JUDGE) if part.name.startswith(model)]
        assert sum(p.least for p in parts) <= answers.tallies[model].requests <= sum(p.most for p in parts)


async def test_random_walks_stay_within_the_range(make: MakePlan, watcher: Watcher) -> None:
    def choose(request: Request, options: list[str]) -> str:
        return random.Random(request.sampling.seed).choice(options)

    plan, answers = make(personas=12, turns=2, **MODELS, judge_confidence=False), Answers(choose)
    await run(plan, answers, watcher)
    rehearsal = await rehearse(plan, HABITS, words)
    (judge,) = of(rehearsal, JUDGE)
    assert judge.least <= answers.tallies[JUDGE_MODEL].requests <= judge.most
    assert judge.least < judge.work.requests < judge.most


async def test_without_a_word_seen_messages_are_half_of_their_limits(make: MakePlan) -> None:
    plan = make(turns=10, **MODELS)
    rehearsal = await rehearse(plan, ASSUMED, lambda player: BY_CHARACTERS)
    simulator, chatbot = total(rehearsal, SIMULATOR), total(rehearsal, CHATBOT)
    assert simulator.output / simulator.requests == pytest.approx(0.5 * plan.simulators[0].draw.max_tokens, rel=0.02)
    assert isinstance(plan.chatbot, Player)
    assert chatbot.output / chatbot.requests == pytest.approx(0.5 * plan.chatbot.draw.max_tokens, rel=0.02)
    told = " ".join(ASSUMED.told())
    assert "50% of their token limits" in told
    assert "Every path through the rubric" in told


async def test_a_context_that_is_too_small_is_told(make: MakePlan, tmp_path: Path) -> None:
    plan = make(turns=60, **MODELS)
    rehearsal = await rehearse(plan, ASSUMED, lambda player: BY_CHARACTERS)
    (simulator,) = of(rehearsal, SIMULATOR)
    assert "does not fit" in simulator.overflow
    assert not (await rehearse(make(turns=10, **MODELS), ASSUMED, words)).parts[0].overflow


async def test_a_word_limit_ends_conversations_on_paper_too(make: MakePlan) -> None:
    long, short = make(turns=20, **MODELS), make(turns=20, max_total_words=500, **MODELS)
    parts = [(await rehearse(plan, ASSUMED, words)).parts[0] for plan in (long, short)]
    assert parts[0].work.requests == 40
    assert 0 < parts[1].work.requests < 40


async def test_a_chatbot_behind_a_url_has_a_part_without_a_model(make: MakePlan) -> None:
    plan = make(turns=4, simulator=PERSONA, chatbot="mine@http://127.0.0.1:9/v1", judge=[JUDGE_MODEL])
    parts = (await rehearse(plan, ASSUMED, words)).parts
    assert [(part.place.role, part.player is None) for part in parts] == [
        (SIMULATOR, False),
        (CHATBOT, True),
        (JUDGE, False),
    ]
    assert parts[1].work.requests == 8


def test_it_is_asked_for_nothing_that_is_not_planned(tmp_path: Path) -> None:
    plan = make_plan(load_config(None, {"out": tmp_path / "run", "bundle": "psychosis"}))
    assert plan.simulators == ()
    assert not (tmp_path / "run").exists()
