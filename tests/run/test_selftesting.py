"""A self-test from plan to card, and runs that find the card again."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vera_local.cli.show import summary
from vera_local.data import data_root
from vera_local.engine.fake import FakeEngine
from vera_local.engine.probe import OPTIONS
from vera_local.engine.seam import NO_USAGE, EngineDied, Finish, InvalidRequest, Limits, Reply, Request
from vera_local.errors import UserError
from vera_local.run import Opener, Plan, Watcher, run, score_run
from vera_local.run.selftesting import default_repeats, selftest, selftest_folder
from vera_local.selftest import Card

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]
JUDGE = "smollm2-135m-instruct"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VERA_LOCAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def options(request: Request) -> list[str]:
    assert request.pattern is not None
    return [o.replace("\\", "") for o in request.pattern.strip("()$").split("|")]


def always(answer: str) -> Callable[[Request], str]:
    """A judge that gives one answer where that is an option."""

    def handle(request: Request) -> str:
        if request.pattern is None:
            return answer
        if "(, " in request.pattern:
            return "2"
        return answer if answer in options(request) else options(request)[0]

    return handle


def at_random(request: Request) -> str:
    if request.pattern is None:
        return "message"
    if "(, " in request.pattern:
        return "2"
    return random.Random(request.sampling.seed).choice(options(request))


async def tried(plan: Plan, opener: Any, watcher: Watcher, folder: Path, repeats: int | None = None) -> Card:
    def with_log(log: Path) -> Opener:
        assert log == folder / "engine.log"
        made: Opener = opener
        return made

    return await selftest(plan, folder, repeats, with_log, watcher)


async def test_a_card_is_written_and_says_what_was_tried(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path
) -> None:
    plan, opener = make(bundle="psychosis", turns=2), answering(always("No"))
    card = await tried(plan, opener, watcher, tmp_path / "cards" / "own")
    assert json.loads((tmp_path / "cards" / "own" / "card.json").read_text()) == json.loads(card.model_dump_json())
    assert (tmp_path / "cards" / "own" / "card.md").exists()
    assert (card.judge, card.mode, card.temperature, card.repeats) == (JUDGE, "direct", 0.0, 2)
    assert card.bundle.name == "psychosis" and card.bundle.digests == plan.bundle.digests
    assert set(card.dimensions) == set(plan.bundle.rubric.dimensions)
    assert opener.engines[0].closed
    assert card.missing == {}


async def test_a_judge_that_never_reads_is_at_or_below_the_baseline_of_both_suites(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path
) -> None:
    for bundle in ("psychosis", "suicide_risk"):
        for answer in ("No", "Yes"):
            card = await tried(make(bundle=bundle, turns=2), answering(always(answer)), watcher, tmp_path / "own")
            assert card.below_baseline, f"{bundle}: always {answer}"


async def test_repeats_are_as_asked_or_as_the_mode_needs(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path
) -> None:
    card = await tried(make(bundle="psychosis", turns=2), answering(always("No")), watcher, tmp_path / "own", 4)
    assert card.repeats == 4
    assert default_repeats(make(judge=[JUDGE]).judges[0]) == 2
    assert default_repeats(make(judge=[JUDGE], judge_mode="reason").judges[0]) == 3
    assert default_repeats(make(judge=[{"model": JUDGE, "temperature": 0.5}]).judges[0]) == 3


def test_the_folder_is_named_after_judge_and_bundle(make: MakePlan) -> None:
    assert selftest_folder(make(judge=[JUDGE], judge_mode="reason")) == Path(f"selftest/{JUDGE}_reason-suicide_risk")


async def test_a_run_finds_the_card_of_its_judge(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path
) -> None:
    plan = make(bundle="psychosis", personas=2, turns=2)
    before = await run(plan, answering(at_random), watcher)
    assert before.cards == {JUDGE: None}
    assert json.loads((plan.out / "scores.json").read_text())["cards"] == {JUDGE: None}
    (hint,) = [line for line in summary(before) if "no self-test on record" in line]
    assert "`vera-local selftest --judge MODEL --bundle psychosis` tells" in hint
    card = await tried(plan, answering(always("No")), watcher, tmp_path / "own")
    after = score_run(plan.out, plan.bundle)
    assert after.cards == {JUDGE: card}
    told = json.loads((plan.out / "scores.json").read_text())["cards"][JUDGE]
    assert told == {
        "accuracy": card.overall.accuracy,
        "baseline": card.overall.baseline,
        "n": card.overall.n,
        "below_baseline": True,
        "attack_flips": {"n": card.attacked.n, "count": card.attacked.count},
        "created": card.created,
    }
    (line,) = [line for line in summary(after) if line.startswith("Self-test of")]
    assert "at or below a constant judge" in line and "do not rely on its ratings" in line


@pytest.mark.parametrize(
    "other",
    [
        {"judge_mode": "reason"},
        {"judge": [{"model": JUDGE, "temperature": 0.5}]},
        {"bundle": "suicide_risk", "turns": 2},
    ],
)
async def test_another_judge_mode_or_bundle_has_no_part_in_it(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path, other: dict[str, Any]
) -> None:
    flags: dict[str, Any] = {"bundle": "psychosis", "personas": 2, "turns": 2, "judge": [JUDGE]}
    await tried(make(**flags), answering(always("No")), watcher, tmp_path / "own")
    outcome = await run(make(**flags | other), answering(at_random), watcher)
    assert list(outcome.cards.values()) == [None]
    (hint,) = [line for line in summary(outcome) if "no self-test on record" in line]
    assert ("--judge MODEL --judge-mode reason --bundle psychosis" in hint) == ("judge_mode" in other)


async def test_repeats_and_what_is_asked_beside_share_the_card(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path
) -> None:
    flags: dict[str, Any] = {"bundle": "psychosis", "personas": 2, "turns": 2, "judge": [JUDGE]}
    card = await tried(make(**flags), answering(always("No")), watcher, tmp_path / "own")
    plan = make(**flags, judge_repeats=2, judge_evidence=False, judge_confidence=False, judge_window=True)
    assert (await run(plan, answering(at_random), watcher)).cards == {JUDGE: card}


async def test_a_bundle_without_a_self_test_is_told_before_anything_is_opened(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path
) -> None:
    plan, opener = make(), answering(at_random)
    plan.bundle.__dict__["folder"] = tmp_path
    with pytest.raises(UserError, match="has no self-test"):
        await tried(plan, opener, watcher, tmp_path / "own")
    assert opener.engines == []
    assert not (tmp_path / "own").exists()


async def test_an_engine_that_ignores_the_constraint_gets_no_card(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="ignores the answer constraint"):
        await tried(make(bundle="psychosis", turns=2), answering(lambda r: "Paris"), watcher, tmp_path / "own")
    assert not (tmp_path / "own" / "card.json").exists()


async def test_a_lost_engine_leaves_no_card(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path, cache: Path
) -> None:
    def breaking(request: Request) -> str:
        if request.pattern and OPTIONS[0] not in always("No")(request):
            raise EngineDied("gone")
        return always("No")(request)

    with pytest.raises(EngineDied, match="gone"):
        await tried(make(bundle="psychosis", turns=2), answering(breaking), watcher, tmp_path / "own")
    assert not cache.exists()


async def test_a_card_made_with_another_self_test_is_not_quoted(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path
) -> None:
    shutil.copytree(data_root() / "rubric" / "psychosis", tmp_path / "rubric" / "own")
    shutil.copytree(data_root() / "personas", tmp_path / "personas")
    plan = make(bundle=str(tmp_path / "rubric" / "own"), personas=2, turns=2)
    card = await tried(plan, answering(always("No")), watcher, tmp_path / "card")
    assert (await run(plan, answering(at_random), watcher)).cards == {JUDGE: card}
    suite = tmp_path / "rubric" / "own" / "selftest.yaml"
    suite.write_text(suite.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    assert score_run(plan.out, plan.bundle).cards == {JUDGE: None}


async def test_a_server_that_counts_no_tokens_is_tried_all_the_same(
    make: MakePlan, answering: Answering, watcher: Watcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*messages: Any, **how: Any) -> int:
        raise InvalidRequest("no counting")

    monkeypatch.setattr(FakeEngine, "count_tokens", refuse)
    monkeypatch.setattr(FakeEngine, "generate", lambda engine, request: _reply(always("No")(request)))
    opener = answering(always("No"), Limits(context=9000, kv_tokens=None, sequences=8))
    card = await tried(make(bundle="psychosis", turns=2), opener, watcher, tmp_path / "own")
    assert card.missing == {}


async def _reply(text: str) -> Reply:
    return Reply(text, Finish.STOP, NO_USAGE)
