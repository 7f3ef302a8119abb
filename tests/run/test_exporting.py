"""Exports for other programs, and the way back."""

from __future__ import annotations

import csv
import json
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.answers import at_random
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.seam import Request
from vera_local.errors import UserError
from vera_local.run import Plan, Watcher, run
from vera_local.run.exporting import Layout, export_run
from vera_local.run.importing import import_run
from vera_local.run.recordings import Found, find

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]
JUDGE = "smollm2-135m-instruct"


async def test_a_judged_run_in_vera_mh_s_layout(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan, out = make(), tmp_path / "out"
    outcome = await run(plan, answering(at_random), watcher)
    exported = export_run(plan.out, plan.bundle, Layout.VERA_MH, out)
    assert (exported.conversations, exported.judges, exported.not_carried) == (4, (JUDGE,), {})
    (evaluation,) = (out / "evaluations").iterdir()
    assert evaluation.name.startswith("j_smollm2_135m_instructx1_20")
    assert evaluation.name.endswith("__p_smollm2_135m_instruct__a_smollm2_135m_instruct__t4__r1")
    with (evaluation / "results.csv").open(encoding="utf-8", newline="") as file:
        results = list(csv.DictReader(file))
    assert {r["filename"] for r in results} == {f.name for f in (out / "conversations").iterdir()}
    for result in results:
        stem = result["filename"].removesuffix(".txt")
        table = (evaluation / f"{stem}_{JUDGE}_i1.tsv").read_text(encoding="utf-8").splitlines()
        assert [line.split("\t")[:2] for line in table[1:]] == [[d, result[d]] for d in plan.bundle.rubric.dimensions]
    scores = json.loads((evaluation / "scores" / "scores.json").read_text(encoding="utf-8"))
    ours = outcome.scores[JUDGE]
    assert scores["aggregates"]["vera_score"] == ours.overall.vera_score
    assert {d: s["vera_score"] for d, s in scores["dimensions"].items()} == {
        d: tally.vera_score for d, tally in ours.dimensions.items()
    }
    assert scores["persona_model"] == scores["agent_model"] == JUDGE
    files = [f for f in out.rglob("*") if f.is_file()]
    assert {stat.S_IMODE(f.stat().st_mode) for f in files} == {0o600}


async def test_an_export_again_gives_the_same_files(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan, out = make(), tmp_path / "out"
    await run(plan, answering(at_random), watcher)

    def files() -> dict[Path, bytes]:
        export_run(plan.out, plan.bundle, Layout.VERA_MH, out)
        return {f: f.read_bytes() for f in out.rglob("*") if f.is_file()}

    assert files() == files()


async def test_two_runs_are_not_mixed_in_one_folder(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    out = tmp_path / "out"
    for seed in (1, 2):
        plan = make(out=tmp_path / f"run{seed}", seed=seed)
        await run(plan, answering(at_random), watcher)
        if seed == 1:
            export_run(plan.out, plan.bundle, Layout.VERA_MH, out)
    before = {f: f.read_bytes() for f in out.rglob("*") if f.is_file()}
    for target in (out, plan.out):
        with pytest.raises(UserError, match="holds other files than an export of this run; name a new or empty folder"):
            export_run(plan.out, plan.bundle, Layout.VERA_MH, target)
    assert {f: f.read_bytes() for f in out.rglob("*") if f.is_file()} == before


def test_what_was_read_keeps_its_name(tmp_path: Path, make: MakePlan) -> None:
    name = "06c2d8_Kevin_claude-opus-4-1_run3.txt"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_text("user: hi\n\nchatbot: hello\n", encoding="utf-8")
    plan = make()
    import_run(plan, find(tmp_path / "in"))
    export_run(plan.out, plan.bundle, Layout.VERA_MH, tmp_path / "out")
    assert (tmp_path / "out" / "conversations" / name).read_bytes() == (tmp_path / "in" / name).read_bytes()


def test_jsonl_alone(tmp_path: Path, make: MakePlan) -> None:
    plan = make()
    import_run(plan, Found((Conversation("a", "", 1, (), Ending.RECORDED),), {}, ()))
    export_run(plan.out, plan.bundle, Layout.JSONL, tmp_path / "out")
    assert [f.name for f in (tmp_path / "out").iterdir()] == ["conversations.jsonl"]


def test_a_folder_that_cannot_be_made_or_holds_no_run_is_told(tmp_path: Path, make: MakePlan) -> None:
    plan = make()
    with pytest.raises(UserError, match="holds no run"):
        export_run(plan.out, plan.bundle, Layout.JSONL, tmp_path / "out")
    import_run(plan, Found((Conversation("a", "", 1, (), Ending.RECORDED),), {}, ()))
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot make this folder"):
        export_run(plan.out, plan.bundle, Layout.VERA_MH, tmp_path / "file" / "out")


def test_a_persona_whose_name_no_file_name_gives_back_is_told(tmp_path: Path, make: MakePlan) -> None:
    plan = make()
    said = (Message(Speaker.PERSONA, "hi"),)
    import_run(plan, Found((Conversation("a", "Mary Ann", 1, said, Ending.RECORDED),), {}, ()))
    exported = export_run(plan.out, plan.bundle, Layout.VERA_MH, tmp_path / "out")
    assert exported.not_carried == {"a": "the file's name does not give back the persona's"}
    (back,) = find(tmp_path / "out" / "conversations.jsonl").conversations
    assert back.persona == "Mary Ann"


AWKWARD = ["\n\n", "\nuser: ", "user: ", "\n\nchatbot: ", "\r", "\r\n", "\t", "🙂", "\n", "[CONVERSATION ENDED - x]"]
TEXTS = st.lists(st.text(max_size=4) | st.sampled_from(AWKWARD), max_size=4).map("".join)
MESSAGES = st.lists(st.builds(Message, st.sampled_from(Speaker), TEXTS), max_size=4).map(tuple)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(MESSAGES, min_size=1, max_size=4))
def test_there_and_back_is_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, make: MakePlan, said: list[tuple[Message, ...]]
) -> None:
    folder = tmp_path_factory.mktemp("there")
    conversations = tuple(Conversation(f"c/{i}", f"P{i}", i, m, Ending.RECORDED) for i, m in enumerate(said, 1))
    plan = replace(make(), out=folder / "run")
    import_run(plan, Found(conversations, {}, ()))
    exported = export_run(plan.out, plan.bundle, Layout.VERA_MH, folder / "out")

    assert find(folder / "out" / "conversations.jsonl").conversations == conversations
    by_persona = {c.persona: c for c in conversations}
    texts = list((folder / "out" / "conversations").iterdir())
    assert len(texts) == len(conversations)
    for file in texts:
        held = by_persona[file.name.split("_")[1]]
        if held.id not in exported.not_carried:
            (back,) = find(file).conversations
            assert (back.persona, back.repeat, back.messages) == (held.persona, held.repeat, held.messages)


async def test_a_rationale_is_the_reason_and_a_jury_quotes_its_members(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    def reasons(request: Request) -> str:
        if request.stop == "Answer:":
            return "It says so in turn 2, as Q99: shows.\tAnswer: Yes"
        return at_random(request)

    servers = [{"model": n, "url": "http://127.0.0.1:9/v1", "mode": m} for n, m in (("a", "reason"), ("b", "direct"))]
    plan, out = make(judge=servers, personas=12), tmp_path / "out"
    outcome = await run(plan, answering(reasons), watcher)
    exported = export_run(plan.out, plan.bundle, Layout.VERA_MH, out)
    assert exported.judges == ("a:reason", "b", "jury")
    told: dict[str, str] = {}
    for judge in ("a_reason", "b", "jury"):
        (folder,) = (out / "evaluations").glob(f"j_{judge}x1_*")
        tables = sorted(folder.glob(f"*_{judge}_i1.tsv"))
        assert len(tables) == 12
        told[judge] = "".join(table.read_text(encoding="utf-8") for table in tables)
        scores = json.loads((folder / "scores" / "scores.json").read_text(encoding="utf-8"))
        name = judge.replace("_", ":")
        assert scores["aggregates"]["vera_score"] == outcome.scores[name].overall.vera_score
    assert "It says so in turn 2, as question 99: shows." in told["a_reason"]
    assert "It says so" not in told["b"]
    assert "a:reason: It says so" in told["jury"]
    assert "; b: " in told["jury"]
