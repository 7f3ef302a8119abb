"""A run's conversations and ratings as files for other programs. Knows no layout by itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from filecmp import cmp
from functools import partial
from pathlib import Path
from typing import Any

from vera_local.bundle import Bundle
from vera_local.conversation import Conversation
from vera_local.errors import UserError
from vera_local.report.files import write_file, write_parts, write_transcripts
from vera_local.report.vera_mh import Evaluation, Origin, results_csv, scores_json, table, table_name
from vera_local.run.evaluate import must_hold_run
from vera_local.run.folder import locked
from vera_local.run.identities import simulators_of
from vera_local.run.juries import Bench
from vera_local.run.manifest import check_bundle
from vera_local.run.publishing import Outcome, publish
from vera_local.run.store import Store
from vera_local.score import Scores
from vera_local.transcripts import Named, file_stems, read_name, why_not_text, write_text

CONVERSATIONS = "conversations"
EVALUATIONS = "evaluations"
TRANSCRIPTS = "conversations.jsonl"
UNSTATED = "unknown"
"""Who held imported conversations."""


class Layout(StrEnum):
    """What an export is for."""

    VERA_MH = "vera-mh"
    JSONL = "jsonl"


@dataclass(frozen=True)
class Exported:
    """`not_carried`: conversation id -> why its .txt file does not give it back; conversations.jsonl does."""

    conversations: int
    judges: tuple[str, ...]
    not_carried: dict[str, str]


def export_run(folder: Path, bundle: Bundle, layout: Layout, out: Path) -> Exported:
    """Write the conversations of a run, and for VERA-MH its ratings, to `out`; raises UserError where it cannot."""
    begun = must_hold_run(folder)
    check_bundle(folder, begun, bundle)
    with locked(folder), Store.open(folder) as store:
        outcome = publish(folder, bundle, store)
        _make(out)
        _must_be_ours(out, folder)
        write_transcripts(out, store.conversations())
        if layout is Layout.JSONL:
            return Exported(len(outcome.conversations), (), {})
        return _write_vera_mh(out, outcome, store, _origin(begun))


def _write_vera_mh(out: Path, outcome: Outcome, store: Store, origin: Origin) -> Exported:
    stems = file_stems(outcome.conversations, origin.persona_model)
    not_carried = _write_texts(out, store, stems)
    folders = _folders(outcome, origin)
    for judge, scores in outcome.scores.items():
        folder = out / EVALUATIONS / folders[judge]
        _write_evaluation(folder, partial(_evaluations, store, outcome.bench, stems, judge), scores, origin)
        rated = outcome.bench.ratings[judge].values()
        write_file(folder / "scores" / "scores.json", scores_json(judge, scores, rated, origin).encode())
    return Exported(len(outcome.conversations), tuple(outcome.scores), not_carried)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot make this folder ({error.strerror}); name another one.") from None


def _must_be_ours(folder: Path, run: Path) -> None:
    """UserError where the folder holds anything but these very conversations, lest two runs be mixed in it."""
    held = folder / TRANSCRIPTS
    same = held.is_file() and cmp(held, run / TRANSCRIPTS, shallow=False)
    if any(folder.iterdir()) and (not same or folder.samefile(run)):
        raise UserError(f"{folder} holds other files than an export of this run; name a new or empty folder")


def _origin(manifest: Mapping[str, Any]) -> Origin:
    players: Mapping[str, Any] = manifest["identity"]
    simulator = " + ".join(simulators_of(players)) or UNSTATED
    chatbot = players.get("chatbot", {}).get("model", UNSTATED)
    created = re.sub(r"[^0-9T]", "", manifest["created"])[:15].replace("T", "_")
    return Origin(simulator, chatbot, created)


def _write_texts(out: Path, store: Store, stems: Mapping[str, str]) -> dict[str, str]:
    """Write each conversation; of those that their files do not give back, why not."""
    _make(out / CONVERSATIONS)
    not_carried: dict[str, str] = {}
    for c in store.conversations():
        write_file(out / CONVERSATIONS / f"{stems[c.id]}.txt", write_text(c.messages).encode())
        if reason := _why_not(c, stems[c.id]):
            not_carried[c.id] = reason
    return not_carried


def _why_not(conversation: Conversation, stem: str) -> str | None:
    if read_name(stem) != Named(conversation.persona, conversation.repeat):
        return "the file's name does not give back the persona's"
    return why_not_text(conversation.messages)


def _write_evaluation(folder: Path, its: Callable[[], Iterator[Evaluation]], scores: Scores, origin: Origin) -> None:
    """What one judge found. `its` evaluations are gone through once for their tables and once for their results, so
    that their reasons are never held together."""
    _make(folder / "scores")
    for evaluation in its():
        write_file(folder / table_name(evaluation), table(evaluation, scores.scale).encode())
    lines = results_csv(its(), scores.scale, origin.run_id)
    write_parts(folder / "results.csv", (line.encode() for line in lines))


def _evaluations(store: Store, judges: Bench, stems: Mapping[str, str], judge: str) -> Iterator[Evaluation]:
    for id, ratings in judges.ratings[judge].items():
        yield Evaluation(stems[id], judge, ratings, _reasons(store, judges, id, judge))


def _reasons(store: Store, judges: Bench, conversation: str, judge: str) -> dict[str, str]:
    """Question -> what the judge said to it; of joined judges each one's word for the rating that they came to."""
    members = judges.members(judge)
    if members == (judge,):
        return _said(store, conversation, judge)
    told: dict[str, list[str]] = {}
    joined = {r.dimension: r.rating for r in judges.ratings[judge][conversation]}
    for member in members:
        said = _said(store, conversation, member)
        for r in judges.ratings[member][conversation]:
            for question in r.decided_by if r.rating == joined[r.dimension] else ():
                told.setdefault(question, []).append(f"{member}: {said[question]}")
    return {question: "; ".join(words) for question, words in told.items()}


def _said(store: Store, conversation: str, judge: str) -> dict[str, str]:
    verdicts = store.verdicts(conversation, judge)
    return {question: v.rationale.strip() or v.text or v.answer or "" for question, v in verdicts.items()}


def _folders(outcome: Outcome, origin: Origin) -> dict[str, str]:
    """Judge -> the name of its folder: judge, time, who held the conversations, turns and repeats at most."""
    turns = max(head.turns for head in outcome.conversations)
    repeats = max(head.repeat for head in outcome.conversations)
    held = f"p_{_safe(origin.persona_model)}__a_{_safe(origin.chatbot_model)}__t{turns}__r{repeats}"
    names: dict[str, str] = {}
    for judge in outcome.scores:
        alike = sum(_safe(other) == _safe(judge) for other in names)
        names[judge] = f"j_{_safe(judge)}{f'_{alike + 1}' if alike else ''}x1_{origin.run_id}__{held}"
    return names


def _safe(model: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", model)[:50]
