"""Whole runs on fake engines: what is asked, kept, continued, refused and written."""

from __future__ import annotations

import asyncio
import json
import random
import re
import sqlite3
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.answers import at_random
from tests.run.held import held
from vera_local.conversation import Ending
from vera_local.engine.probe import SEED as PROBE
from vera_local.engine.seam import ContextOverflow, EngineDied, EngineError, Finish, Limits, Reply, Request, Usage
from vera_local.errors import UserError
from vera_local.run import Plan, Watcher, judge_run, run, score_run
from vera_local.run.folder import locked
from vera_local.run.manifest import NAME as MANIFEST
from vera_local.run.store import NAME, Store
from vera_local.seed import derive

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]


def rows(folder: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(folder / NAME)) as db:
        return db.execute(query).fetchall()


async def test_a_run_leaves_everything_behind(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan, opener = make(), answering(at_random)
    outcome = await run(plan, opener, watcher)
    assert len(opener.engines) == 1, "one model in three roles is loaded once"
    assert opener.engines[0].closed
    assert [c.ending for c in outcome.conversations] == [Ending.TURNS] * 4
    assert all(len(c.messages) == 4 and c.messages[-1].speaker == "chatbot" for c in held(outcome))
    scores = outcome.scores["smollm2-135m-instruct"]
    assert scores.conversations == 4
    assert sum(t.total for t in scores.dimensions.values()) == 4 * 5
    assert {f.name for f in plan.out.iterdir()} >= {
        NAME, MANIFEST, "results.csv", "results.parquet", "scores.json", "conversations.jsonl",
    }  # fmt: skip
    assert stat.S_IMODE(plan.out.stat().st_mode) == 0o700
    assert {stat.S_IMODE(f.stat().st_mode) for f in plan.out.rglob("*") if f.is_file()} == {0o600}
    assert {stat.S_IMODE(f.stat().st_mode) for f in plan.out.rglob("*") if f.is_dir()} == {0o700}


async def test_every_request_has_its_own_seed_and_states_its_sampling(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    opener = answering(at_random)
    await run(make(repeats=2), opener, watcher)
    seeds = Counter(r.sampling.seed for r in opener.requests if r.sampling.seed != PROBE)
    assert set(seeds.values()) == {1}


async def test_the_same_seed_gives_the_same_run_and_another_one_another(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    async def shuffled(request: Request) -> str:
        for _ in range(random.randrange(5)):
            await asyncio.sleep(0)
        return at_random(request)

    texts = []
    for number, (seed, handler) in enumerate([(1, at_random), (1, shuffled), (2, at_random)]):
        plan = make(out=tmp_path / str(number), seed=seed)
        await run(plan, answering(handler), watcher)
        texts.append((plan.out / "conversations.jsonl").read_bytes() + (plan.out / "results.csv").read_bytes())
    assert texts[0] == texts[1] != texts[2]


async def test_a_finished_run_asks_nothing_again(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make()
    first = await run(plan, answering(at_random), watcher)
    opener = answering(at_random)
    assert await run(plan, opener, watcher) == first
    assert opener.engines == []


@pytest.mark.parametrize("breaks", [1, 5, 17, 19])
async def test_a_lost_engine_leaves_what_was_finished(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher, breaks: int
) -> None:
    plan, left = make(), breaks

    def breaking(request: Request) -> str:
        nonlocal left
        left -= request.sampling.seed != PROBE
        if left < 0:
            raise EngineDied("gone")
        return at_random(request)

    with pytest.raises(EngineDied, match="gone"):
        await run(plan, answering(breaking), watcher)
    before = len(rows(plan.out, "select 1 from messages")) + len(rows(plan.out, "select 1 from verdicts"))
    assert before >= min(breaks, 16) - 1
    await run(plan, answering(at_random), watcher)
    undisturbed = make(out=tmp_path / "undisturbed")
    await run(undisturbed, answering(at_random), watcher)
    for name in ("conversations.jsonl", "results.csv", "scores.json"):
        assert (plan.out / name).read_bytes() == (undisturbed.out / name).read_bytes()


async def test_a_conversation_that_outgrows_the_context_is_marked_and_the_run_goes_on(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    third_message = derive(0, f"{make().personas[0].name}-1", 3, 0)

    def handler(request: Request) -> str:
        if request.sampling.seed == third_message:
            raise ContextOverflow(9000, 8192)
        return at_random(request)

    plan = make()
    outcome = await run(plan, answering(handler), watcher)
    endings = Counter(c.ending for c in outcome.conversations)
    assert endings == {Ending.OVERFLOW: 1, Ending.TURNS: 3}
    assert outcome.scores["smollm2-135m-instruct"].conversations == 3
    (detail,) = rows(plan.out, "select detail from conversations where ending = 'overflow'")
    assert "9000" in detail[0]


async def test_a_judge_whose_context_is_too_small_leaves_unrated_and_is_counted(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    def handler(request: Request) -> str:
        if request.pattern is not None and "transcript" in request.messages[0].content:
            raise ContextOverflow(9000, 8192)
        return at_random(request)

    outcome = await run(make(), answering(handler), watcher)
    assert outcome.missing_verdicts == {"overflow": 4}
    scores = outcome.scores["smollm2-135m-instruct"]
    assert [t.unrated for t in scores.dimensions.values()] == [4] * 5
    assert scores.overall.vera_score is None


async def test_an_answer_that_is_no_option_is_invalid_and_never_guessed(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    def handler(request: Request) -> str | Reply:
        if request.pattern is not None and "transcript" in request.messages[0].content:
            return Reply("yes", Finish.STOP, Usage())
        return at_random(request)

    plan = make()
    outcome = await run(plan, answering(handler), watcher)
    assert set(outcome.missing_verdicts) == {"invalid"}
    assert rows(plan.out, "select distinct answer, text from verdicts where mode = 'direct'") == [(None, "yes")]
    assert all(t.relevant == 0 for t in outcome.scores["smollm2-135m-instruct"].dimensions.values())


async def test_an_engine_that_ignores_the_constraint_is_refused(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make()
    with pytest.raises(UserError, match=r"ignores the answer constraint \(it wrote 'Paris'\)"):
        await run(plan, answering(lambda request: "Paris"), watcher)
    assert rows(plan.out, "select 1 from verdicts") == []
    # Found before an hour is spent on conversations that nobody can judge.
    assert rows(plan.out, "select 1 from messages") == []


async def test_what_an_error_ended_is_tried_again(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan, faults = make(), [0]

    def faulty(request: Request) -> str:
        faults[0] += request.sampling.seed != PROBE
        if faults[0] in (3, 22):
            raise EngineError("a hiccup")
        return at_random(request)

    outcome = await run(plan, answering(faulty), watcher)
    assert Ending.ERROR in {c.ending for c in outcome.conversations} or outcome.missing_verdicts
    again = await run(plan, answering(at_random), watcher)
    assert {c.ending for c in again.conversations} == {Ending.TURNS}
    assert again.missing_verdicts == {}


async def test_a_folder_of_another_run_is_refused_and_left_alone(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make()
    await run(plan, answering(at_random), watcher)
    before = {f: f.read_bytes() for f in plan.out.rglob("*") if f.is_file()}
    for flags, told in [({"seed": 9}, "seed was 0, now 9"), ({"turns": 8}, "turns was 4, now 8")]:
        with pytest.raises(UserError, match=f"holds a different run: .*{told}; name another --out"):
            await run(make(**flags), answering(at_random), watcher)
    assert {f: f.read_bytes() for f in plan.out.rglob("*") if f.is_file()} == before


async def test_a_further_judge_rates_the_same_conversations(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    await run(make(), answering(at_random), watcher)
    opener = answering(at_random)
    outcome = await judge_run(make(judge="m@http://127.0.0.1:9/v1"), opener, watcher)
    assert set(outcome.scores) == {"smollm2-135m-instruct", "m", "jury"}
    asked = [r for r in opener.requests if r.sampling.seed != PROBE]
    assert all(r.pattern is not None or r.labels for r in asked), "nothing is simulated again"


async def test_a_further_judge_leaves_the_first_ones_ratings_alone(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    failed = [0]

    def faulty(request: Request) -> str:
        if request.pattern is not None and "transcript" in request.messages[0].content:
            failed[0] += 1
            if failed[0] == 3:
                raise EngineError("a hiccup")
        return at_random(request)

    first = await run(make(), answering(faulty), watcher)
    assert first.missing_verdicts == {"error": 1}
    both = await judge_run(make(judge="m@http://127.0.0.1:9/v1"), answering(at_random), watcher)
    assert both.scores["smollm2-135m-instruct"] == first.scores["smollm2-135m-instruct"]
    assert both.reasons == {"error": "a hiccup"}


async def test_models_of_one_name_are_not_one_model(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    """Two checkpoints in folders of one name shared an engine, and the chatbot under test was never loaded."""
    shipped = (Path(__file__).parents[2] / "models" / "qwen3-8b.toml").read_text(encoding="utf-8")
    for place in ("base", "tuned"):
        (tmp_path / place).mkdir()
        own = shipped.replace('hub = "Qwen/Qwen3-8B"', f'path = "{tmp_path / place}"')
        (tmp_path / place / "qwen3-8b.toml").write_text(own, encoding="utf-8")
    base, tuned = (str(tmp_path / place / "qwen3-8b.toml") for place in ("base", "tuned"))
    opener = answering(at_random)
    await run(make(simulator=base, chatbot=tuned, judge=base), opener, watcher)
    opened = [opening.player.profile.source.path for opening in opener.openings]
    assert opened == [str(tmp_path / "base"), str(tmp_path / "tuned")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('thinking_switch = "enable_thinking"', 'thinking_switch = "think"'),
        ('prompt = "full"', 'prompt = "short"'),
        ("context = 16384", "context = 8192"),
        ('dtype = "auto"', 'dtype = "float16"'),
        ("temperature = 0.8", "temperature = 0.9\nrepetition_penalty = 1.1"),
    ],
)
async def test_whatever_changes_what_is_said_makes_another_run(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher, old: str, new: str
) -> None:
    profile = tmp_path / "qwen3-8b.toml"
    shipped = (Path(__file__).parents[2] / "models" / "qwen3-8b.toml").read_text(encoding="utf-8")
    assert old in shipped
    profile.write_text(shipped, encoding="utf-8")
    await run(make(simulator=str(profile)), answering(at_random), watcher)
    profile.write_text(shipped.replace(old, new), encoding="utf-8")
    with pytest.raises(UserError, match=r"holds a different run: simulator\."):
        await run(make(simulator=str(profile)), answering(at_random), watcher)


async def test_a_folder_with_other_files_is_left_alone(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make()
    plan.out.mkdir()
    plan.out.chmod(0o755)
    (plan.out / "thesis.tex").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match=r"holds other files \(thesis\.tex\) and no run; name a new or empty folder"):
        await run(plan, answering(at_random), watcher)
    assert stat.S_IMODE(plan.out.stat().st_mode) == 0o755
    assert [f.name for f in plan.out.iterdir()] == ["thesis.tex"]


async def test_a_run_that_lost_its_manifest_is_not_mixed_with_another(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make()
    await run(plan, answering(at_random), watcher)
    (plan.out / MANIFEST).unlink()
    with pytest.raises(UserError, match=r"manifest\.json is missing: it says what made the run"):
        await run(make(turns=8), answering(at_random), watcher)


@pytest.mark.parametrize("lost", ["deleted", "emptied"])
async def test_a_lost_store_is_no_empty_run(make: MakePlan, answering: Answering, watcher: Watcher, lost: str) -> None:
    """Its good results were overwritten by those of no conversation at all, with exit code 0."""
    plan = make()
    await run(plan, answering(at_random), watcher)
    results = (plan.out / "results.csv").read_bytes()
    (plan.out / NAME).unlink()
    if lost == "emptied":
        (plan.out / NAME).touch()
    for again in (
        lambda: score_run(plan.out, plan.bundle),
        lambda: asyncio.run(run(plan, answering(at_random), watcher)),
    ):
        with pytest.raises(UserError, match=r"run\.sqlite is missing or empty, and with it the run; restore it"):
            await asyncio.to_thread(again)
    assert (plan.out / "results.csv").read_bytes() == results


async def test_cut_and_empty_replies_are_counted(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    def handler(request: Request) -> str | Reply:
        if request.pattern is None and request.sampling.max_tokens == 300:
            return Reply("", Finish.LENGTH, Usage())
        return at_random(request)

    outcome = await run(make(), answering(handler), watcher)
    assert outcome.replies == (8, 8, 8)


async def test_simulate_first_and_judge_later(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make()
    outcome = await run(plan, answering(at_random), watcher, judge=False)
    assert outcome.scores == {}
    judged = await judge_run(plan, answering(at_random), watcher)
    assert judged.scores["smollm2-135m-instruct"].conversations == 4
    assert score_run(plan.out, plan.bundle) == judged


@pytest.mark.parametrize("job", ["judge", "score"])
async def test_without_a_run_there_is_nothing_to_judge_or_score(
    make: MakePlan, answering: Answering, watcher: Watcher, job: str
) -> None:
    plan = make()
    with pytest.raises(UserError, match=r"holds no run; make one with `vera-local run`"):
        score_run(plan.out, plan.bundle) if job == "score" else await judge_run(plan, answering(at_random), watcher)
    assert not plan.out.exists()


async def test_one_process_at_a_time(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make()
    plan.out.mkdir()
    script = f"import sys; from pathlib import Path; from vera_local.run.folder import locked\n\
with locked(Path({str(plan.out)!r})): print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(UserError, match="is in use by another process"):
            await run(plan, answering(at_random), watcher)
        other.stdin.close()
        other.wait()
    with locked(plan.out):
        pass


async def test_a_folder_that_cannot_be_made_is_named(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match=r"file/run: cannot write there \(Not a directory\); name another --out"):
        await run(make(out=tmp_path / "file" / "run"), answering(at_random), watcher)


async def test_a_broken_manifest_is_named(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make()
    plan.out.mkdir()
    (plan.out / MANIFEST).write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=r"manifest\.json: this is no manifest of a run"):
        await run(plan, answering(at_random), watcher)
    (plan.out / MANIFEST).write_text('{"schema": 99}', encoding="utf-8")
    with pytest.raises(UserError, match=r"manifest\.json: this manifest is of another version or not whole"):
        await run(plan, answering(at_random), watcher)


async def test_usage_of_every_stage_is_recorded(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan, opener = make(), answering(at_random)
    await run(plan, opener, watcher)
    with Store.open(plan.out) as store:
        usage = store.usage()
    assert all(usage[stage].prompt > 0 and usage[stage].output > 0 for stage in ("simulator", "chatbot", "judge"))


async def test_kv_tokens_bound_what_is_in_flight(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    opener = answering(at_random, Limits(context=8192, kv_tokens=1500, sequences=64))
    outcome = await run(make(personas=8), opener, watcher)
    assert outcome.scores["smollm2-135m-instruct"].conversations == 8
    assert 1 <= opener.engines[0].peak < 8


async def test_exports_keep_the_word_none_and_the_missing_apart(
    make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make()
    await run(plan, answering(at_random), watcher)
    frame = pl.read_parquet(plan.out / "results.parquet")
    assert set(frame["group"]) == {"None", "Low", "High", "Immediate"}
    lines = (plan.out / "conversations.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["persona"] for line in lines] == [p.name for p in plan.personas]


async def test_the_manifest_says_what_made_the_run(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make()
    await run(plan, answering(at_random), watcher)
    manifest = json.loads((plan.out / MANIFEST).read_text(encoding="utf-8"))
    assert re.fullmatch(r"[0-9a-f]{64}", manifest["fingerprint"])
    assert manifest["identity"]["bundle"]["files"].keys() >= {"rubric.yaml", "suicide_risk.tsv", "judge_system.txt"}
    assert manifest["identity"]["simulator"]["files"]
    assert manifest["config"]["turns"] == 4
    assert manifest["versions"]["torch"]
    assert manifest["judges"].keys() == {"smollm2-135m-instruct"}
