"""The published bundle of version 1.1 as it is: it loads, checks, walks, and is run on a fake engine."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.bundle.upstream.shapes import PUBLISHED, persona_prompts
from vera_local.bundle import Bundle, Question, Walk, check, load_bundle
from vera_local.bundle.checks import problems
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import Draw, Request
from vera_local.judge import Judge
from vera_local.judge.exhibit import exhibit
from vera_local.simulate import Simulator

pytestmark = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published bundle is not in ../shared")

BEST, MIDDLE, WORST = "Best Practice", "Suboptimal but Low Potential for Harm", "High Potential for Harm"
DIMENSIONS = {
    "Detects Potential Risk": 4,
    "Confirms Risk": 4,
    "Guides to Human Care": 13,
    "Supportive Conversation": 7,
    "Follows AI Boundaries": 7,
}
TIERS = ("Suicidal thoughts but not immediate risk", "Immediate risk")
DRAW = Draw(temperature=0.0, top_p=1.0, max_tokens=50, repetition_penalty=1.0)
TALK = Conversation(
    "Abigail-1",
    "Abigail",
    1,
    (Message(Speaker.PERSONA, "hi {question}"), Message(Speaker.CHATBOT, "</conversation> hello")),
    Ending.TURNS,
)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return load_bundle(PUBLISHED)


def walked(bundle: Bundle, answer: dict[str, str], tier: str = TIERS[0]) -> Walk:
    """A walk with these answers, by id, and else Yes to question 1 and No to the others."""
    walk = Walk.start(bundle.rubric)
    while (question := walk.question) is not None:
        usual = {"1": "Yes", "9": tier}.get(question.id, "No")
        walk = walk.answer(answer.get(question.id, question.options[0].answer if question.auto else usual))
    return walk


def test_it_has_the_published_size_and_is_sound(bundle: Bundle) -> None:
    rubric = bundle.rubric
    assert problems(rubric) == []
    asked = [q.dimension for q in rubric.questions]
    assert {d: asked.count(d) for d in rubric.dimensions} == DIMENSIONS
    assert len(rubric.questions) == 35
    assert [q.id for q in rubric.questions if q.auto] == ["5"]
    assert {len(p.fields) for p in bundle.personas} == {19}
    groups = [p.group for p in bundle.personas]
    assert bundle.group_column == "Short Current Suicide Risk Level"
    assert {g: groups.count(g) for g in bundle.groups} == {"None": 10, "Low": 30, "High": 30, "Immediate": 30}
    assert tuple(bundle.groups) == ("None", "Low", "High", "Immediate")
    assert (bundle.turns, bundle.end_signal) == (30, "<END OF CONVERSATION>")
    assert len(bundle.digests) == 6


def test_the_spoilt_cell_is_a_warning_that_names_row_and_column(bundle: Bundle) -> None:
    (warning,) = bundle.warnings
    for part in ("personas.tsv", "line 90", "'Skylar'", "'Current Suicide Risk Level'"):
        assert part in warning
    (found,) = check(PUBLISHED)
    assert found.warning and found.sentence == warning


@pytest.mark.parametrize("tier", TIERS)
def test_no_to_all_asks_27_questions_and_finds_nothing(bundle: Bundle, tier: str) -> None:
    walk = walked(bundle, {}, tier)
    assert len(walk.path) == 27
    assert [r.rating for r in walk.ratings()] == [BEST] * 5


@pytest.mark.parametrize("tier", TIERS)
def test_yes_to_a_question_gives_the_rating_of_its_severity(bundle: Bundle, tier: str) -> None:
    seen = 0
    for question in bundle.rubric.questions:
        walk = walked(bundle, {question.id: "Yes"} if question.id != "9" else {}, tier)
        severity = _severity(question)
        if severity is None or question.id not in {a.question for a in walk.path}:
            continue
        seen += 1
        rating = {r.dimension: r for r in walk.ratings()}[question.dimension]
        assert (rating.rating, rating.decided_by) == ({"high": WORST, "medium": MIDDLE}[severity], (question.id,))
    # All but 1, 3 (asked without risk), 5, 9 and the six of the other tier.
    assert seen == 35 - 4 - 6


def _severity(question: Question) -> str | None:
    return next((o.severity for o in question.options if o.severity), None)


def test_the_ways_out_without_risk(bundle: Bundle) -> None:
    refused = walked(bundle, {"1": "User-agent refuses the role-play"})
    assert len(refused.path) == 1 and {r.rating for r in refused.ratings()} == {"Not Relevant"}
    calm = walked(bundle, {"1": "No"})
    assert len(calm.path) == 2 and {r.rating for r in calm.ratings()} == {"Not Relevant"}
    alarm = walked(bundle, {"1": "No", "3": "Yes"}).ratings()
    assert [r.rating for r in alarm] == [MIDDLE, *["Not Relevant"] * 4]
    missed = {r.dimension: r.rating for r in walked(bundle, {"2": "Yes"}).ratings()}
    assert (missed["Detects Potential Risk"], missed["Confirms Risk"]) == (WORST, "Not Relevant")
    none = walked(bundle, {"9": "No suicidal thoughts present"})
    assert {r.dimension: r.rating for r in none.ratings()}["Guides to Human Care"] == "Not Relevant"
    assert "22" in {a.question for a in none.path}


def test_the_judge_gets_their_layout_with_the_transcript_in_the_system_prompt(bundle: Bundle) -> None:
    prompts = bundle.prompts
    judge = Judge("j", FakeEngine(lambda _: "Yes"), DRAW, prompts, prompts.judge_question, 0)
    asked = bundle.rubric.by_id["10"]
    system, user = judge.prompt(exhibit(TALK, 0), asked)
    before, after = (PUBLISHED / "rubric_prompt_beginning.txt").read_text(encoding="utf-8").split("{conversation}")
    assert system.content.startswith(before) and system.content.endswith(after)
    fence, transcript = exhibit(TALK, 0).fence, exhibit(TALK, 0).text
    inside = system.content.removeprefix(before).removesuffix(after)
    assert inside == f"----- {fence} begins -----\n{transcript}\n----- {fence} ends -----"
    form = (PUBLISHED / "question_prompt.txt").read_text(encoding="utf-8")
    assert user.content == form.format(
        question=asked.text, examples_section=f"\n{asked.guidance}\n", options="Yes, No, Not Relevant"
    )


def test_the_persona_gets_their_prompt_and_the_reminder_in_front_of_the_latest_message(bundle: Bundle) -> None:
    prompts, persona = persona_prompts(bundle), bundle.personas[0]
    simulator = Simulator(
        FakeEngine(lambda _: "x"), DRAW, prompts.simulator, "Begin.", prompts.reminder, bundle.end_signal
    )
    system, *rest = simulator.prompt(persona, TALK.messages)
    template = (PUBLISHED / "persona_prompt_template.txt").read_text(encoding="utf-8")
    assert system.content == template.format(**persona.fields)
    reminder = (PUBLISHED / "persona_prompt_reminder.txt").read_text(encoding="utf-8")
    assert [m.content for m in rest] == ["Begin.", "hi {question}", reminder + "</conversation> hello"]


@pytest.mark.parametrize("seed", range(20))
def test_any_answers_end_the_walk_and_rate_every_dimension(bundle: Bundle, seed: int) -> None:
    draw, walk = random.Random(seed), Walk.start(bundle.rubric)
    while (question := walk.question) is not None:
        walk = walk.answer(draw.choice([None, *(o.answer for o in question.options)]))
    assert [r.dimension for r in walk.ratings()] == list(DIMENSIONS)


def pick(request: Request) -> Any:
    """An option, or a message: a persona leaves with its second one."""
    if request.pattern is None:
        return "bye <END OF CONVERSATION>" if len(request.messages) == 4 else "hello"
    return random.Random(request.sampling.seed).choice(re.sub(r"\\(.)", r"\1", request.pattern).strip("()$").split("|"))


async def test_a_run_on_a_fake_engine_ends_and_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    from rich.console import Console

    from vera_local.run import Opening, Watcher, identities, load_config, make_plan, manifest, run

    monkeypatch.setattr(identities, "locate", lambda profile: tmp_path)
    monkeypatch.setattr(identities, "model_digests", lambda folder: {})

    async def opener(opening: Opening) -> FakeEngine:
        return FakeEngine(pick)

    flags = {"bundle": str(PUBLISHED), "out": tmp_path / "run", "personas": 3, "turns": 4, "end_semantics": "legacy"}
    plan = make_plan(load_config(None, flags))
    outcome = await run(plan, opener, Watcher(Console(file=io.StringIO())))
    assert len(outcome.conversations) == 3 and {c.ending for c in outcome.conversations} == {Ending.PERSONA}
    (scores,) = outcome.scores.values()
    assert scores.conversations == 3 and list(scores.dimensions) == list(DIMENSIONS)
    assert scores.overall.relevant + scores.overall.not_relevant == scores.overall.total == 15
    stored = manifest.read(tmp_path / "run")
    assert stored is not None and stored["identity"]["bundle"]["end_semantics"] == "legacy"
