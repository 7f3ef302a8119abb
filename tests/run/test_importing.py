"""Conversations that were held elsewhere become a run that can be judged, once and for all."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.run.held import held
from vera_local.conversation import Ending, Speaker
from vera_local.engine.probe import SEED as PROBE
from vera_local.engine.seam import Request
from vera_local.errors import UserError
from vera_local.run import Plan, Watcher, judge_run, run, score_run
from vera_local.run.importing import import_run, unknown_personas
from vera_local.run.recordings import Found, find
from vera_local.run.store import NAME

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]
RATED = Path(__file__).parents[2] / "../shared/data/clinician-ratings/conversations"
CUT = "e6e8fd_Maya_g5_run1"


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    return folder


TALK = "user: hi\n\nchatbot: hello\n"


def test_folders_are_read_whatever_their_names(tmp_path: Path) -> None:
    odd = "p_gpt__{'max_completion_tokens': 5000}__[a]"
    folder = write(
        tmp_path / "in",
        {
            f"{odd}/conversations/aaaaaa_Ray_m_run2.txt": TALK,
            "b/talk.txt": TALK,
            "c/talk.txt": TALK,
            "b/logs/x.log": "log",
            ".hidden/y.txt": "hidden",
            "b/._talk.txt": "hidden",
            "results.csv": "not,a,conversation",
        },
    )
    found = find(folder)
    assert [(c.id, c.persona, c.repeat) for c in found.conversations] == [
        ("b/talk", "", 1),
        ("c/talk", "", 1),
        ("aaaaaa_Ray_m_run2", "Ray", 2),
    ]
    digest = hashlib.sha256(TALK.encode()).hexdigest()
    assert found.files == dict.fromkeys(
        ["b/talk.txt", "c/talk.txt", f"{odd}/conversations/aaaaaa_Ray_m_run2.txt"], digest
    )


def test_single_files_of_each_format(tmp_path: Path) -> None:
    chat = json.dumps({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]})
    table = "conversation,turn,speaker,text\nx,1,user,hi\nx,2,chatbot,hello\n"
    write(tmp_path, {"a_Ray_m_run1.txt": TALK, "b.jsonl": chat, "c.CSV": table})
    for name, id in (("a_Ray_m_run1.txt", "a_Ray_m_run1"), ("b.jsonl", "b-1"), ("c.CSV", "x")):
        found = find(tmp_path / name)
        (conversation,) = found.conversations
        assert conversation.id == id
        assert [(m.speaker, m.text) for m in conversation.messages] == [("persona", "hi"), ("chatbot", "hello")]
        assert list(found.files) == [name]


@pytest.mark.parametrize(
    ("files", "path", "told"),
    [
        ({}, "absent", "absent does not exist"),
        ({"a.jsonl": "{}"}, ".", "no .txt file is in or below this folder"),
        ({"a.docx": "x"}, "a.docx", "this is no .txt, .jsonl or .csv file"),
        ({"a.jsonl": "\n"}, "a.jsonl", "holds no conversation"),
        ({"a.txt": TALK, "b/c.txt": "notes"}, ".", "c.txt, line 1: a conversation begins with"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, files: dict[str, str], path: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        find(write(tmp_path, files) / path)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_text_that_is_not_utf_8_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"user: hi\n\nchatbot: caf\xe9\n")
    with pytest.raises(UserError, match=r"a\.txt, line 3: not UTF-8"):
        find(tmp_path)


def answers(request: Request) -> str:
    draw = random.Random(request.sampling.seed)
    judging = request.pattern is not None or request.labels or request.sampling.seed == PROBE
    assert judging, "a judge alone takes part"
    if request.pattern is None:
        return ""
    return draw.choice([o.replace("\\", "") for o in request.pattern.strip("()$").split("|")])


def few(folder: Path, plan: Plan) -> Found:
    known = plan.bundle.personas[0].name
    names = [f"aaaaaa_{known}_m_run1.txt", "bbbbbb_Nobody_m_run1.txt", "plain.txt"]
    return find(write(folder / "in", dict.fromkeys(names, TALK) | {"empty.txt": "No conversation recorded."}))


async def test_an_import_is_judged_and_scored_by_group(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan, opener = make(), answering(answers)
    outcome = import_run(plan, few(tmp_path, plan))
    assert Counter(c.ending for c in outcome.conversations) == {Ending.RECORDED: 4}
    assert unknown_personas(outcome) == {"Nobody": 1, "": 2}
    assert outcome.scores == {}
    judged = await judge_run(plan, opener, watcher)
    (scores,) = judged.scores.values()
    assert scores.conversations == 3, "one without messages says nothing about the chatbot"
    known = plan.bundle.personas[0].group
    assert {name: group.conversations for name, group in scores.groups.items() if group.conversations} == {
        known: 1,
        "Unknown": 2,
    }
    assert list(scores.groups) == [*plan.bundle.groups, "Unknown"]
    assert score_run(plan.out, plan.bundle).scores == judged.scores
    assert len((plan.out / "conversations.jsonl").read_text(encoding="utf-8").splitlines()) == 4


async def test_a_group_for_the_unknown_is_shown_only_where_there_are_any(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make()
    import_run(plan, find(write(tmp_path / "in", {f"aaaaaa_{plan.bundle.personas[0].name}_m_run1.txt": TALK})))
    judged = await judge_run(plan, answering(answers), watcher)
    assert all(list(s.groups) == list(plan.bundle.groups) for s in judged.scores.values())


def test_the_manifest_says_where_the_conversations_are_from(tmp_path: Path, make: MakePlan) -> None:
    plan = make()
    found = few(tmp_path, plan)
    import_run(plan, found)
    manifest = json.loads((plan.out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["identity"]["imported"] == found.files
    assert manifest["notes"] == list(found.notes) != []
    assert manifest["config"].keys() == {"bundle", "target", "end_semantics", "out", "seed", "engine", "judge"}, (
        "nobody else took part"
    )


async def test_the_same_import_again_changes_nothing(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make()
    import_run(plan, few(tmp_path, plan))
    judged = await judge_run(plan, answering(answers), watcher)
    manifest = (plan.out / "manifest.json").read_bytes()
    again = import_run(plan, few(tmp_path, plan))
    assert (again.conversations, again.scores) == (judged.conversations, judged.scores)
    assert (plan.out / "manifest.json").read_bytes() == manifest


def test_an_import_that_was_cut_short_is_finished(tmp_path: Path, make: MakePlan) -> None:
    plan = make()
    whole = import_run(plan, few(tmp_path, plan))
    for file in plan.out.glob(f"{NAME}*"):
        file.unlink()
    assert import_run(plan, few(tmp_path, plan)).conversations == whole.conversations


@pytest.mark.parametrize("change", ["one more", "one less", "other text"])
def test_another_import_is_refused(tmp_path: Path, make: MakePlan, change: str) -> None:
    plan = make()
    import_run(plan, few(tmp_path, plan))
    folder = tmp_path / "in"
    if change == "one more":
        write(folder, {"new.txt": TALK})
    elif change == "one less":
        (folder / "plain.txt").unlink()
    else:
        write(folder, {"plain.txt": TALK + "\nuser: more\n"})
    with pytest.raises(UserError, match=r"holds a different run: imported\..+txt was"):
        import_run(plan, find(folder))
    with closing(sqlite3.connect(plan.out / NAME)) as db:
        assert db.execute("select count(*) from messages").fetchone() == (6,)


def test_judges_that_are_named_later_are_noted(tmp_path: Path, make: MakePlan) -> None:
    def noted() -> list[str]:
        return [
            j["model"] for j in json.loads((plan.out / "manifest.json").read_text(encoding="utf-8"))["config"]["judge"]
        ]

    plan = make(judge=["qwen3-8b", "m@http://127.0.0.1:9/v1"])
    found = few(tmp_path, plan)
    import_run(plan, found)
    assert noted() == ["qwen3-8b", "m"]
    import_run(make(judge="gemma-3-12b-it"), found)
    import_run(make(), found)
    assert noted() == ["qwen3-8b", "m", "gemma-3-12b-it"]


async def test_a_run_and_an_import_do_not_mix(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make()
    import_run(plan, few(tmp_path, plan))
    with pytest.raises(UserError, match="holds a different run"):
        await run(plan, answering(answers), watcher)
    shutil.rmtree(plan.out)
    await run(plan, answering(lambda request: "hi" if request.pattern is None else "Paris"), watcher, judge=False)
    with pytest.raises(UserError, match="holds a different run"):
        import_run(plan, few(tmp_path, plan))


@pytest.mark.skipif(not RATED.exists(), reason="the conversations that clinicians rated are not beside this checkout")
def test_the_conversations_that_clinicians_rated(tmp_path: Path, make: MakePlan) -> None:
    found = find(RATED)
    assert len(found.conversations) == len(found.files) == 90
    # The copy at hand of one file stops inside a word, at 9 KiB: what is there is read, and nothing is made up.
    lengths = {c.id: len(c.messages) for c in found.conversations}
    assert {id: n for id, n in lengths.items() if n != 20} == {CUT: 12}
    for c in found.conversations:
        assert [m.speaker for m in c.messages] == [Speaker.PERSONA, Speaker.CHATBOT] * (len(c.messages) // 2)
    empty = [m.speaker for c in found.conversations for m in c.messages if not m.text.strip()]
    assert empty == [Speaker.CHATBOT] * 4, "the chatbot said nothing, and that is kept"
    assert found.notes == ()
    assert Counter(c.persona for c in found.conversations).keys() == {
        "Alix", "Brian", "Kevin", "Kim", "Lena", "Maya", "Noah", "Omar", "Ray", "Sky",
    }  # fmt: skip
    assert held(import_run(make(), found)) == found.conversations
