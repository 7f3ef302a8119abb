"""A run folder with any conversations and verdicts, made without a model. Knows no test."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from vera_local.bundle import Question, Rubric, Walk
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.judge import Confidence, Mode, State, Verdict
from vera_local.run import Plan, load_config, make_plan, manifest, score_run
from vera_local.run.folder import prepare_folder
from vera_local.run.rows import ADD_VERDICT, columns_of
from vera_local.run.store import NAME, Store

Said = Callable[[int, int], str]
"""What is said in a turn (from 1) of a conversation (from 1)."""

ENDINGS = (Ending.TURNS, Ending.PERSONA, Ending.TURNS, Ending.SIMULATOR)


def words(conversation: int, turn: int) -> str:
    """Some text of a usual length, the same each time."""
    draw = random.Random(conversation * 1000 + turn)
    some = ("I", "feel", "that", "nothing", "helps", "me", "today", "and", "what", "would", "you", "do", "about", "it")
    return " ".join(draw.choices(some, k=draw.randint(10, 90))).capitalize() + "."


def made_run(
    folder: Path,
    conversations: int = 12,
    turns: int = 4,
    *,
    judges: Sequence[str] = ("strict",),
    said: Said = words,
    rationale: str = "The reply asks about it.",
    chatbot: str = "bot",
    score: bool = True,
) -> Path:
    """A run of the bundle for suicide risk whose judges rated all that is fit to judge."""
    plan = make_plan(load_config(None, {"out": folder, "bundle": "suicide_risk"}))
    prepare_folder(folder)
    manifest.enter_import(plan, {"talks.jsonl": "0" * 64}, [])
    _entered(folder, chatbot, judges)
    held = [_conversation(plan, n, turns, said) for n in range(1, conversations + 1)]
    with Store.open(folder) as store:
        store.record(held)
        for judge in judges:
            _judge(folder, plan, [c for c in held if c.judgeable], judge, rationale)
    if score:
        score_run(folder, plan.bundle)
    return folder


def _entered(folder: Path, chatbot: str, judges: Sequence[str]) -> None:
    """The manifest names who took part."""
    begun = manifest.read(folder)
    assert begun is not None
    begun["identity"]["chatbot"] = {"model": chatbot, "embedded": False}
    begun["judges"] = {
        name: {"model": f"model of {name}", "judge": name, "repeat": 1, "mode": "direct", "embedded": False}
        for name in judges
    }
    manifest.save(folder, begun)


def _conversation(plan: Plan, number: int, turns: int, said: Said) -> Conversation:
    personas = plan.bundle.personas
    sides = (Speaker.PERSONA, Speaker.CHATBOT)
    messages = tuple(Message(sides[t % 2], said(number, t + 1)) for t in range(turns))
    persona = personas[(number - 1) % len(personas)].name
    return Conversation(f"talk-{number}", persona, 1, messages, ENDINGS[number % len(ENDINGS)])


def _judge(folder: Path, plan: Plan, held: Sequence[Conversation], judge: str, rationale: str) -> None:
    """All at once: a commit for each verdict takes long."""
    rows: list[tuple[Any, ...]] = []
    ratings: list[tuple[object, ...]] = []
    for c in held:
        verdicts, walk = _walked(c, judge, rationale, plan.bundle.rubric)
        for place, verdict in enumerate(verdicts, 1):
            rows.append((c.id, judge, place, *columns_of(verdict)))
        ratings += [(c.id, judge, r.dimension, r.rating, json.dumps(r.decided_by)) for r in walk.ratings()]
    with closing(sqlite3.connect(folder / NAME)) as db, db:
        db.executemany(ADD_VERDICT, rows)
        db.executemany("insert into ratings values (?, ?, ?, ?, ?)", ratings)


def _walked(c: Conversation, judge: str, rationale: str, rubric: Rubric) -> tuple[list[Verdict], Walk]:
    """The path of one judge, to its end."""
    draw, walk, verdicts = random.Random(f"{c.id} {judge}"), Walk.start(rubric), []
    while (question := walk.question) is not None:
        verdicts.append(_verdict(question, len(c.messages), rationale, draw))
        walk = walk.answer(verdicts[-1].answer)
    return verdicts, walk


def _verdict(question: Question, turns: int, rationale: str, draw: random.Random) -> Verdict:
    options = [option.answer for option in question.options]
    if question.auto:
        return Verdict(question.id, State.ANSWERED, options[0], Mode.AUTO)
    answer, sure = draw.choice([options[-1], *options]), draw.choice([0.9, 0.9, 0.9, 0.5])
    return Verdict(
        question=question.id,
        state=State.ANSWERED,
        answer=answer,
        mode=Mode.DIRECT,
        rationale=rationale,
        evidence=(2 * draw.randint(1, max(1, turns // 2)),),
        confidence=Confidence({**dict.fromkeys(options, (1 - sure) / (len(options) - 1)), answer: sure}),
    )
