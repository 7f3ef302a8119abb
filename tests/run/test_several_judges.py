"""Runs with several judges: what each is asked, what is never asked again, and what they come to together."""

from __future__ import annotations

import asyncio
import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.answers import at_random
from vera_local.engine.seam import EngineDied, Finish, InvalidRequest, Limits, Reply, Request, Usage
from vera_local.errors import UserError
from vera_local.judge import Mode
from vera_local.judge.jury import JURY, RULE, join
from vera_local.run import Outcome, Plan, Watcher, judge_run, load_config, make_plan, manifest, run, score_run
from vera_local.run.host import key_of
from vera_local.run.store import Store

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]
A, B, C = (f"{name}@http://127.0.0.1:9/v1" for name in "abc")
EMBEDDED = "smollm2-135m-instruct"


def plain(*judges: Any, **flags: Any) -> dict[str, Any]:
    """Flags for judges of which the answers alone are asked."""
    return {"judge": list(judges), "judge_evidence": False, "judge_confidence": False} | flags


def judging(opener: Any) -> list[Request]:
    """What judges were asked, without probes."""
    return [r for r in opener.requests if "transcript" in r.messages[0].content]


def seeds(opener: Any) -> Counter[int]:
    return Counter(r.sampling.seed for r in judging(opener))


def files(outcome: Outcome) -> dict[str, bytes]:
    names = ("results.csv", "verdicts.csv", "scores.json", "conversations.jsonl")
    return {name: (outcome.folder / name).read_bytes() for name in names}


async def test_each_judge_walks_alone_one_after_another(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan, opener = make(**plain(A, B)), answering(at_random)
    outcome = await run(plan, opener, watcher)
    assert set(outcome.scores) == {"a", "b", JURY}
    assert [o.player.profile.name for o in opener.openings][2:] == [EMBEDDED, "a", "b"], "two were asked beforehand"
    assert all(engine.closed for engine in opener.engines)
    alone = answering(at_random)
    await run(make(out=plan.out.parent / "alone", **plain(A)), alone, watcher)
    assert seeds(alone).keys() < seeds(opener).keys(), "a judge answers as it would alone"
    assert set(seeds(opener).values()) == {1}


async def test_one_model_in_several_seats_is_loaded_once(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    both = [{"model": EMBEDDED, "repeats": 2}, {"model": EMBEDDED, "mode": "reason"}]
    plan, opener = make(judge=[both[0], A, both[1]]), answering(at_random)
    outcome = await run(plan, opener, watcher)
    assert [o.player.profile.name for o in opener.openings] == ["a", EMBEDDED, "a"]
    repeated = f"{EMBEDDED} (majority of 2)"
    assert set(outcome.scores) == {EMBEDDED, f"{EMBEDDED}#2", f"{EMBEDDED}:reason", "a", repeated, JURY}
    assert outcome.bench.judges == ("a", repeated, f"{EMBEDDED}:reason")
    with Store.open(plan.out) as store:
        modes = {given.judge: given.verdict.mode for given in store.all_verdicts() if given.verdict.mode != Mode.AUTO}
    assert modes == {
        EMBEDDED: Mode.DIRECT,
        f"{EMBEDDED}#2": Mode.DIRECT,
        f"{EMBEDDED}:reason": Mode.REASON,
        "a": Mode.DIRECT,
    }


@pytest.mark.parametrize("how", ["judge", "run"])
async def test_adding_a_judge_asks_only_what_is_missing(
    make: MakePlan, answering: Answering, watcher: Watcher, how: str
) -> None:
    first = answering(at_random)
    before = await run(make(**plain(A)), first, watcher)
    more = answering(at_random)
    if how == "judge":
        both = await judge_run(make(**plain(B)), more, watcher)
    else:
        both = await run(make(**plain(A, B)), more, watcher)
    assert {o.player.profile.name for o in more.openings} == {"b"}
    assert not seeds(first) & seeds(more)
    assert both.scores["a"] == before.scores["a"]
    whole = await run(make(out=both.folder.parent / "whole", **plain(A, B)), answering(at_random), watcher)
    assert files(whole) == files(both)


async def test_adding_repeats_keeps_those_that_are_there(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    await run(make(**plain(A)), answering(at_random), watcher)
    more = answering(at_random)
    outcome = await judge_run(make(**plain(A, judge_repeats="3")), more, watcher)
    assert set(outcome.scores) == {"a", "a#2", "a#3", "a (majority of 3)"}
    assert outcome.bench.juries == {"a (majority of 3)": ("a", "a#2", "a#3")}
    again = answering(at_random)
    assert await judge_run(make(**plain(A)), again, watcher) == outcome
    assert again.engines == []


async def test_a_run_knows_all_its_judges(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    await run(make(**plain(A)), answering(at_random), watcher)
    await judge_run(make(**plain(B, judge_repeats="2")), answering(at_random), watcher)
    entered = manifest.read(make().out)
    assert entered is not None
    stored = make_plan(load_config(None, {}, entered["config"]))
    assert [seat.name for seat in stored.judges] == ["a", "b", "b#2"] == list(entered["judges"])
    assert entered["jury_rule"] == RULE
    facts = {"judge": "b", "repeat": 2, "mode": "direct", "window": False, "evidence": False, "confidence": False}
    assert facts.items() <= entered["judges"]["b#2"].items()
    assert "max_tokens" not in entered["judges"]["b"], "a budget decides nothing where there is no reasoning"


async def test_a_judge_of_a_run_is_added_though_the_model_of_another_is_gone(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    profile = tmp_path / "own.toml"
    shipped = (Path(__file__).parents[2] / "models" / "qwen3-8b.toml").read_text(encoding="utf-8")
    profile.write_text(shipped.replace('name = "qwen3-8b"', 'name = "own"'), encoding="utf-8")
    await run(make(**plain(str(profile))), answering(at_random), watcher)
    profile.unlink()
    outcome = await judge_run(make(**plain(B)), answering(at_random), watcher)
    assert set(outcome.scores) == {"own", "b", JURY}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"judge_window": True}, "judge qwen3-8b:think: window was false, now true"),
        ({"judge_evidence": True}, "judge qwen3-8b:think: evidence was false, now true"),
        ({"max_tokens": 99}, "judge qwen3-8b:think: max_tokens was 2048, now 99"),
    ],
)
async def test_a_judge_of_other_settings_is_not_the_same_judge(
    make: MakePlan, answering: Answering, watcher: Watcher, change: dict[str, Any], told: str
) -> None:
    flags = plain({"model": "qwen3-8b", "mode": "think"})
    await run(make(**flags), answering(thinking), watcher)
    if "max_tokens" in change:
        flags["judge"][0] |= change
    else:
        flags |= change
    with pytest.raises(UserError, match=told):
        await judge_run(make(**flags), answering(thinking), watcher)


def thinking(request: Request) -> str:
    return "I wonder.</think>" if request.thinking and request.pattern is None else at_random(request)


async def test_a_judge_thinks_within_its_budget_and_the_store_keeps_what_it_thought(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make(**plain({"model": "qwen3-8b", "mode": "think", "max_tokens": 77}))
    opener = answering(thinking)
    await run(plan, opener, watcher)
    asked = [r for r in judging(opener) if r.pattern is None]
    assert {(r.thinking, r.sampling.max_tokens, r.stop) for r in asked} == {(True, 77, "</think>")}
    rows = pl.read_parquet(plan.out / "verdicts.parquet").filter(pl.col("mode") == "think")
    assert set(rows["rationale"]) == {"I wonder."}
    assert set(rows["judge"]) == {"qwen3-8b:think"}


async def test_the_jury_is_the_majority_of_judges_and_a_repeated_judge_counts_once(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make(**plain({"model": "a", "url": "http://127.0.0.1:9/v1", "repeats": 3}, B, C))
    outcome = await run(plan, answering(at_random), watcher)
    ratings, rubric = outcome.bench.ratings, plan.bundle.rubric
    for c in outcome.conversations:
        repeated = join([ratings[name][c.id] for name in ("a", "a#2", "a#3")], rubric)
        assert ratings["a (majority of 3)"][c.id] == repeated
        assert ratings[JURY][c.id] == join([repeated, ratings["b"][c.id], ratings["c"][c.id]], rubric)
    written = json.loads((plan.out / "scores.json").read_text(encoding="utf-8"))
    assert written["juries"] == {
        "a (majority of 3)": {"members": ["a", "a#2", "a#3"], "rule": RULE},
        JURY: {"members": ["a (majority of 3)", "b", "c"], "rule": RULE},
    }
    frame = pl.read_csv(plan.out / "results.csv")
    assert set(frame["judge"]) == {"a", "a#2", "a#3", "b", "c", "a (majority of 3)", JURY}


async def test_a_jury_rates_what_all_its_members_have_rated(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    await run(make(**plain(A)), answering(at_random), watcher)
    plan, one_at_a_time = make(**plain(B)), Limits(context=100_000, kv_tokens=1, sequences=1)

    def breaking(request: Request) -> str:
        with Store.open(plan.out) as store:
            if len(store.rated("b")) == 2:
                raise EngineDied("gone")
        return at_random(request)

    with pytest.raises(EngineDied):
        await judge_run(plan, answering(breaking, one_at_a_time), watcher)
    begun = score_run(plan.out, plan.bundle)
    by_b = set(begun.bench.ratings["b"])
    assert len(by_b) == 2
    assert set(begun.bench.ratings[JURY]) == by_b
    assert len(begun.bench.ratings["a"]) == 4
    whole = await judge_run(plan, answering(at_random), watcher)
    assert len(whole.bench.ratings[JURY]) == 4


async def test_a_judge_that_has_rated_nothing_takes_no_part(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    await run(make(**plain(A)), answering(at_random), watcher)

    def dead(request: Request) -> str:
        raise EngineDied("gone")

    plan = make(**plain(B))
    with pytest.raises(EngineDied):
        await judge_run(plan, answering(dead), watcher)
    assert set(score_run(plan.out, plan.bundle).scores) == {"a"}


@pytest.mark.parametrize("breaks", [18, 25, 40, 55])
async def test_a_stopped_run_with_several_judges_goes_on_as_if_it_had_not_stopped(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher, breaks: int
) -> None:
    flags, left = plain(A, B, judge_repeats="2"), breaks

    def breaking(request: Request) -> str:
        nonlocal left
        left -= 1
        if left < 0:
            raise EngineDied("gone")
        return at_random(request)

    with pytest.raises(EngineDied):
        await run(make(**flags), answering(breaking), watcher)
    mended = await run(make(**flags), answering(at_random), watcher)
    whole = await run(make(out=tmp_path / "whole", **flags), answering(at_random), watcher)
    assert files(mended) == files(whole)


async def test_repeats_and_judges_are_compared(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make(**plain({"model": "a", "url": "http://127.0.0.1:9/v1", "repeats": 2}, B))
    outcome = await run(plan, answering(at_random), watcher)
    with (plan.out / "verdicts.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["mode"] != "auto"]
    first, second = (
        {(r["conversation"], r["question"]): r["answer"] for r in rows if r["judge"] == n} for n in ("a", "a#2")
    )
    shared = first.keys() & second.keys()
    assert 0 < len(shared) < len(first | second), "their paths part"
    alike = outcome.repeats["a (majority of 2)"]
    assert (alike.alike, alike.total) == (sum(first[k] == second[k] for k in shared), len(shared))
    ((pair, share),) = outcome.agreement.items()
    assert pair == ("a (majority of 2)", "b")
    assert 0 <= share.alike <= share.total <= 4 * 5


async def test_a_judge_that_always_says_the_same_agrees_with_itself(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    def steady(request: Request) -> str:
        return "hi" if request.pattern is None else request.pattern.strip("()$").split("|")[0].replace("\\", "")

    outcome = await run(make(**plain(A, B, judge_repeats="2")), answering(steady), watcher)
    assert all(share.alike == share.total > 0 for share in (*outcome.repeats.values(), *outcome.agreement.values()))
    assert {r.rating for r in outcome.bench.ratings[JURY][outcome.conversations[0].id]} == {
        r.rating for r in outcome.bench.ratings["a"][outcome.conversations[0].id]
    }


async def test_doubtful_answers_are_counted_and_stand(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    """To a label read the fake says `message`, which begins no option: the options hold no probability."""
    plan = make(judge=[A], judge_evidence=False)
    outcome = await run(plan, answering(at_random), watcher)
    frame = pl.read_parquet(plan.out / "verdicts.parquet").filter(pl.col("mode") == "direct")
    assert outcome.uncertain == {"a": frame.height}
    assert set(frame["doubt"]) == {"the options hold 0.00 of the probability"}
    assert set(frame["mass"]) == {0.0}
    assert frame["answer"].null_count() == 0
    assert outcome.missing_verdicts == {}


async def test_evidence_is_asked_stored_and_written(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    def names_turns(request: Request) -> str:
        if request.pattern is not None and "none" in request.pattern:
            return "2, 4"
        return at_random(request)

    plan = make(judge=[A], judge_confidence=False)
    await run(plan, answering(names_turns), watcher)
    frame = pl.read_parquet(plan.out / "verdicts.parquet")
    assert set(frame["evidence"].drop_nulls()) == {"2 4"}
    with Store.open(plan.out) as store:
        kept = {g.verdict.evidence for g in store.all_verdicts()}
    assert kept == {(2, 4), None}


async def test_every_server_is_asked_before_a_run_begins(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    async def absent(opening: Any) -> Any:
        if opening.player.profile.name == "b":
            raise UserError("no server answers")
        return await answering(at_random)(opening)

    plan = make(**plain(A, B))
    with pytest.raises(UserError, match="no server answers"):
        await run(plan, absent, watcher)
    assert not plan.out.exists()


def test_seats_of_one_engine_have_one_key(make: MakePlan) -> None:
    plan = make(judge=[{"model": EMBEDDED, "repeats": 3}, {"model": EMBEDDED, "mode": "reason"}])
    assert len({key_of(seat.player) for seat in plan.judges}) == 1


async def test_old_runs_are_read_and_further_judged(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    """A manifest whose config names one judge, as a table, and whose judges have no repeats."""
    await run(make(**plain(A)), answering(at_random), watcher)
    file = make().out / manifest.NAME
    entered = json.loads(file.read_text(encoding="utf-8"))
    entered["config"]["judge"] = {"model": "a", "url": "http://127.0.0.1:9/v1", "key_env": None, "temperature": None}
    for key in ("judge", "repeat", "mode", "window", "evidence", "confidence"):
        del entered["judges"]["a"][key]
    file.write_text(json.dumps(entered), encoding="utf-8")
    assert set(score_run(make().out, make().bundle).scores) == {"a"}
    assert load_config(None, {}, entered["config"]).judge is not None
    outcome = await judge_run(make(**plain(B)), answering(at_random), watcher)
    assert set(outcome.scores) == {"a", "b", JURY}


async def test_judges_wait_for_room_for_their_reasoning(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    limits = Limits(context=100_000, kv_tokens=3000, sequences=64)
    peaks = {}
    for mode in ("direct", "reason"):
        opener = answering(at_random, limits)
        plan = make(out=make().out.parent / mode, **plain(A), judge_mode=mode)
        await asyncio.wait_for(run(plan, opener, watcher), 60)
        peaks[mode] = next(e.peak for e in opener.engines if any(r in e.requests for r in judging(opener)))
    assert 1 <= peaks["reason"] < peaks["direct"] == 4


async def test_a_judge_of_the_run_with_other_settings_is_refused_with_a_way_out(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    before = await run(make(**plain(A)), answering(at_random), watcher)
    with pytest.raises(
        UserError, match="judge a: window was false, now true; ask for the same settings again, or "
    ) as error:
        await judge_run(make(**plain(A, judge_window=True)), answering(at_random), watcher)
    assert "`vera-local import RUN/conversations.jsonl --out NEW`" in str(error.value)
    assert score_run(before.folder, before.bundle) == before


@pytest.mark.parametrize("name", [JURY, "a (majority of 2)"])
def test_no_judge_has_the_name_of_several_together(make: MakePlan, name: str) -> None:
    with pytest.raises(UserError, match="no judge can be called"):
        make(judge=[A, f"{name}@http://127.0.0.1:9/v1"], judge_repeats=2)


async def test_a_reading_without_its_labels_leaves_the_run_whole(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    def lacking(request: Request) -> str | Reply:
        return Reply("", Finish.LENGTH, Usage()) if request.labels else at_random(request)

    outcome = await run(make(judge=[A], judge_evidence=False), answering(lacking), watcher)
    assert outcome.missing_verdicts == {}
    assert pl.read_parquet(outcome.folder / "verdicts.parquet")["mass"].null_count() > 0


async def test_what_went_wrong_is_in_the_verdict_files(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    def failing(request: Request) -> str:
        if "transcript" in request.messages[0].content:
            raise InvalidRequest("this does not suit me")
        return at_random(request)

    outcome = await run(make(**plain(A)), answering(failing), watcher)
    frame = pl.read_parquet(outcome.folder / "verdicts.parquet")
    assert set(frame["detail"]) == {"this does not suit me"} and set(frame["state"]) == {"error"}
