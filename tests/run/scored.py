"""Folders as a judged run leaves them, without a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vera_local.report import Instrument, write_results
from vera_local.run import manifest
from vera_local.run.identities import fingerprint
from vera_local.score import Put, Rating, Scale, questions_frame, ratings_frame, score_by_judge

SCALE = Scale(("good", "fair", "bad"), "n/a", ("Warmth", "Care"), ("None", "Low"))
BUNDLE = {"name": "try_out", "version": "1.0", "files": {"rubric.yaml": "d1"}, "end_semantics": "fixed"}
JUDGE = {"model": "j", "temperature": 0.0, "files": {"weights": "w1"}}


def scored(
    folder: Path,
    words: dict[str, dict[str, list[str | None]]],
    *,
    chatbot: str | None = "bot",
    simulator: str = "sim",
    bundle: dict[str, Any] = BUNDLE,
    judges: dict[str, Any] | None = None,
    juries: dict[str, Any] | None = None,
    scale: Scale = SCALE,
) -> Path:
    """A run: judge -> persona -> the rating of each of its conversations in Care; Warmth has the best one."""
    folder.mkdir()
    rows = [
        Rating(f"{persona}-{k}", persona, scale.groups[len(persona) % 2], k, judge, dimension, rating)
        for judge, personas in words.items()
        for persona, its in personas.items()
        for k, word in enumerate(its, 1)
        for dimension, rating in (("Warmth", scale.ratings[0]), ("Care", word))
    ]
    asked = [
        Put(r.conversation, r.persona, r.judge, "q", "Yes", "Care", r.rating, "high" if r.rating == "bad" else None)
        for r in rows
        if r.dimension == "Care" and r.rating != scale.ratings[0]
    ]
    ratings, questions = ratings_frame(rows), questions_frame(asked)
    scores = score_by_judge(ratings, scale, questions=questions)
    write_results(folder, ratings, questions, scores, Instrument("try_out", "1.0", "Risk"), juries or {}, {})
    identity: dict[str, Any] = {
        "bundle": bundle,
        "simulator": {"model": simulator},
        "turns": 4,
        "repeats": 1,
        "seed": 0,
    }
    if chatbot is not None:
        identity["chatbot"] = {"model": chatbot, "system_prompt": ""}
    begun = {
        "schema": manifest.SCHEMA,
        "fingerprint": fingerprint(identity),
        "identity": identity,
        "judges": judges if judges is not None else {judge: JUDGE for judge in words if judge not in (juries or {})},
        "config": {"bundle": "try_out"},
        "notice": "not validated",
    }
    (folder / "manifest.json").write_text(json.dumps(begun), encoding="utf-8")
    return folder
