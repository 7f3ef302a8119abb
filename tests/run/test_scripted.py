"""Runs of a bundle whose personas say one scripted message: what is asked, shown, kept and continued."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.answers import at_random, options
from tests.run.held import held
from vera_local.bundle import load_bundle
from vera_local.conversation import Ending, Speaker
from vera_local.engine.probe import SEED as PROBE
from vera_local.engine.seam import EngineDied, Limits, Request, Usage
from vera_local.errors import UserError
from vera_local.run import Plan, Player, Watcher, judge_run, load_config, make_plan, manifest, run
from vera_local.run.store import NAME, Store
from vera_local.seed import derive

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]
JUDGE = "smollm2-135m-instruct"
CRITERIA = [q.id for q in load_bundle("psychosis").rubric.questions]


@pytest.fixture
def vignettes(tmp_path: Path) -> MakePlan:
    """A plan of the psychosis bundle; keywords as the command line's flags."""

    def plan(**flags: Any) -> Plan:
        return make_plan(load_config(None, {"bundle": "psychosis", "out": tmp_path / "run"} | flags))

    return plan


def told(opener: Any) -> list[Request]:
    """The requests to the chatbot."""
    return [r for r in opener.requests if r.pattern is None and not r.labels and r.sampling.seed != PROBE]


def judged(opener: Any) -> list[Request]:
    """The requests to the judge, without the probes at its start."""
    return [r for r in opener.requests if r.pattern is not None and options(r) == ["Yes", "No"]]


async def test_each_vignette_gets_one_reply_and_seven_verdicts(
    vignettes: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan, opener = vignettes(personas=19), answering(at_random)
    outcome = await run(plan, opener, watcher)
    assert Counter(c.ending for c in outcome.conversations) == {Ending.TURNS: 19}
    openings = {p.name: p.opening for p in plan.personas}
    for conversation in held(outcome):
        assert [m.speaker for m in conversation.messages] == [Speaker.PERSONA, Speaker.CHATBOT]
        assert conversation.messages[0].text == openings[conversation.persona]
    assert (len(told(opener)), len(judged(opener))) == (19, 19 * 7)
    scores = outcome.scores[JUDGE]
    assert [t.relevant for t in scores.dimensions.values()] == [19] * 7
    assert (scores.overall.not_relevant, scores.overall.unrated, scores.overall.vera_score) == (0, 0, None)
    assert {g: p.conversations for g, p in scores.groups.items()} == {
        "Schizophrenia": 9, "Schizoaffective disorder": 5, "Bipolar disorder": 5, "Control": 0,
    }  # fmt: skip


async def test_requests_are_as_in_the_study(vignettes: MakePlan, answering: Answering, watcher: Watcher) -> None:
    opener = answering(at_random)
    plan = vignettes(personas="bus")
    await run(plan, opener, watcher)
    (asked,) = told(opener)
    assert [(m.role, m.content) for m in asked.messages] == [("user", plan.personas[0].opening)], "no system prompt"
    assert asked.sampling.temperature == 0.7
    assert {r.sampling.temperature for r in judged(opener)} == {0.0}
    questions = plan.bundle.rubric.questions
    assert [[q.id for q in questions if q.text in r.messages[-1].content] for r in judged(opener)] == [
        [c] for c in CRITERIA
    ], "one criterion per request"


async def test_no_simulator_is_opened_nor_entered(
    vignettes: MakePlan, answering: Answering, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    opener = answering(at_random)
    plan = vignettes(personas=2, simulator="no-such-model", chatbot="qwen3-8b")
    await run(plan, opener, watcher)
    assert {o.player.profile.name for o in opener.openings} == {"qwen3-8b", JUDGE}
    entered = manifest.read(plan.out)
    assert entered is not None
    assert "simulator" not in entered["identity"]
    with Store.open(plan.out) as store:
        assert store.usage()["simulator"] == Usage()


async def test_the_manifest_records_the_temperatures(
    vignettes: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = vignettes(personas=1)
    await run(plan, answering(at_random), watcher)
    entered = manifest.read(plan.out)
    assert entered is not None
    assert entered["identity"]["chatbot"]["temperature"] == 0.7
    assert entered["identity"]["chatbot"]["system_prompt"] == ""
    assert entered["judges"][JUDGE]["temperature"] == 0.0


def test_a_config_of_ones_own_wins_over_the_bundle(tmp_path: Path, vignettes: MakePlan) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        f'bundle = "psychosis"\n[chatbot]\nmodel = "{JUDGE}"\ntemperature = 0.2\n[judge]\nmodel = "qwen3-8b"\n',
        encoding="utf-8",
    )
    plan = make_plan(load_config(file, {}))
    chatbot, published = plan.chatbot, vignettes().chatbot
    assert isinstance(chatbot, Player) and isinstance(published, Player)
    assert (chatbot.draw.temperature, plan.judges[0].player.draw.temperature) == (0.2, 0.0)
    shipped = published.profile.roles.chatbot
    assert shipped.temperature != 0.7, "else the next line shows nothing"
    assert published.draw.temperature == 0.7
    assert published.draw.top_p == shipped.top_p


def test_the_demonstration_is_one_vignette_of_each_presentation(vignettes: MakePlan) -> None:
    plan = vignettes()
    assert [p.group for p in plan.personas] == ["Schizophrenia", "Schizoaffective disorder", "Bipolar disorder"]
    assert (plan.turns, plan.simulators) == (2, ())
    assert len(vignettes(chatbot="qwen3-8b", judge="qwen3-8b").personas) == 19


def test_controls_take_part_on_demand(vignettes: MakePlan) -> None:
    models = {"chatbot": "qwen3-8b", "judge": "qwen3-8b"}
    assert Counter(p.control for p in vignettes(controls=True, **models).personas) == {False: 19, True: 19}
    assert [p.name for p in vignettes(controls=True, personas="bus,bus-control").personas] == ["bus", "bus-control"]
    with pytest.raises(UserError, match="'bus-control' is a control; add --controls"):
        vignettes(personas="bus,bus-control")
    with pytest.raises(UserError, match="--controls: the bundle 'suicide_risk' has no controls"):
        vignettes(bundle="suicide_risk", controls=True)


@pytest.mark.parametrize("turns", ["3", "4", "30"])
def test_more_turns_than_the_script_has_are_refused(vignettes: MakePlan, turns: str) -> None:
    with pytest.raises(UserError, match=rf"^--turns {turns}: a persona of the bundle 'psychosis' says one scripted"):
        vignettes(turns=turns)
    assert vignettes(turns="1").turns == vignettes(turns="2").turns == 2


async def test_controls_are_a_group_of_their_own(vignettes: MakePlan, answering: Answering, watcher: Watcher) -> None:
    control = make_plan(load_config(None, {"bundle": "psychosis", "controls": True})).bundle.personas[-1]

    def flags_controls(request: Request) -> str:
        if request.pattern is None or options(request) != ["Yes", "No"]:
            return at_random(request)
        return "Yes" if (control.opening or "") in request.messages[-1].content else "No"

    plan = vignettes(controls=True, personas=["family", control.name])
    scores = (await run(plan, answering(flags_controls), watcher)).scores[JUDGE]
    assert scores.groups["Control"].overall.counts == {"Safe": 0, "Unsafe": 7}
    assert scores.groups["Bipolar disorder"].overall.counts == {"Safe": 7, "Unsafe": 0}


@pytest.mark.parametrize("breaks", [0, 1, 3, 5, 12])
async def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(
    tmp_path: Path, vignettes: MakePlan, answering: Answering, watcher: Watcher, breaks: int
) -> None:
    left = breaks

    def breaking(request: Request) -> str:
        nonlocal left
        left -= 1
        if left < 0:
            raise EngineDied("gone")
        return at_random(request)

    plan, whole = vignettes(personas=4, controls=True), vignettes(personas=4, controls=True, out=tmp_path / "whole")
    with pytest.raises(EngineDied, match="gone"):
        await run(plan, answering(breaking), watcher)
    await run(plan, answering(at_random), watcher)
    await run(whole, answering(at_random), watcher)
    for name in ("conversations.jsonl", "results.csv", "scores.json"):
        assert (plan.out / name).read_bytes() == (whole.out / name).read_bytes()


async def test_a_vignette_that_was_told_is_not_told_twice(
    vignettes: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = vignettes(personas="bus")

    def dead(request: Request) -> str:
        if request.sampling.seed == PROBE:
            return at_random(request)
        raise EngineDied("gone")

    with pytest.raises(EngineDied):
        await run(plan, answering(dead), watcher)
    with closing(sqlite3.connect(plan.out / NAME)) as db:
        assert db.execute("select turn, speaker from messages").fetchall() == [(1, "persona")]
    opener = answering(at_random)
    outcome = await run(plan, opener, watcher)
    assert outcome.conversations[0].turns == 2
    assert told(opener)[0].sampling.seed == derive(0, "bus-1", 2)


async def test_a_further_judge_rates_the_same_replies(
    vignettes: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    await run(vignettes(personas=2), answering(at_random), watcher, judge=False)
    outcome = await judge_run(vignettes(personas=2, judge="qwen3-8b"), answering(at_random), watcher)
    assert outcome.scores["qwen3-8b"].conversations == 2


async def test_kv_tokens_count_the_vignette_and_the_reply(
    vignettes: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    opener = answering(at_random, Limits(context=8192, kv_tokens=1000, sequences=64))
    outcome = await run(vignettes(personas=8), opener, watcher)
    assert outcome.scores[JUDGE].conversations == 8
    assert 1 <= opener.engines[0].peak < 8


async def test_scores_are_plain_json(vignettes: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = vignettes()
    await run(plan, answering(at_random), watcher)
    judges = json.loads((plan.out / "scores.json").read_text(encoding="utf-8"))["judges"]
    assert judges[JUDGE]["scale"]["not_relevant"] is None
    assert judges[JUDGE]["overall"]["counts"].keys() == {"Safe", "Unsafe"}
