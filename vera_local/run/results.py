"""What runs and pools left of results, and where two of them differ. Knows no store, and scores nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PanicException
from pydantic import TypeAdapter, ValidationError

from vera_local.errors import UserError
from vera_local.report.files import QUESTIONS, RESULTS, SCORES_SCHEMA
from vera_local.run import manifest
from vera_local.run.differences import differing, short
from vera_local.run.identities import POOLED
from vera_local.run.scores_shape import is_whole
from vera_local.score import Scale

_NO_CONDITION = {"bundle", "chatbot", "personas", "repeats", "seed", "engine"}


@dataclass(frozen=True)
class Results:
    """The ratings (SCHEMA) of a run or pool, the questions (QUESTIONS) behind them, and what made them.

    `juries`: judges that stand for several -> their members and rule; `cards`: judges -> what a self-test said of them,
    None where there was none; `begun`: the manifest.
    """

    folder: Path
    ratings: pl.DataFrame
    questions: pl.DataFrame
    scale: Scale
    group_column: str
    juries: Mapping[str, Mapping[str, Any]]
    cards: Mapping[str, Mapping[str, Any] | None]
    begun: Mapping[str, Any]

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides which conversations these are."""
        identity: Mapping[str, Any] = self.begun["identity"]
        return identity

    @property
    def judges(self) -> tuple[str, ...]:
        """Who rated, sorted."""
        return tuple(sorted(self.ratings["judge"].unique()))

    @property
    def chatbot(self) -> str:
        """The name of the model under test."""
        return str(self.identity.get("chatbot", {}).get("model", "unknown"))

    def of_judge(self, judge: str) -> pl.DataFrame:
        """The ratings of one judge."""
        return self.ratings.filter(pl.col("judge") == judge)


def read_results(folder: Path) -> Results:
    """The results in the folder of a run or a pool; UserError where there are none, or not of this version."""
    begun = manifest.read(folder)
    if begun is None:
        raise UserError(f"{folder} holds no run and no pool; name a folder that `vera-local run` or `pool` made")
    scores = _scores(folder)
    if not scores["judges"]:
        raise UserError(f"{folder} has not been judged yet; see vera-local judge {folder}")
    try:
        scale = TypeAdapter(Scale).validate_python(next(iter(scores["judges"].values()))["scale"])
        ratings, questions = (pl.read_parquet(folder / f"{name}.parquet") for name in (RESULTS, QUESTIONS))
        column = scores["bundle"]["group_column"]
        return Results(folder, ratings, questions, scale, column, scores["juries"], scores["cards"], begun)
    except (OSError, KeyError, ValidationError, pl.exceptions.PolarsError, PanicException):
        raise _unreadable(folder) from None


def _scores(folder: Path) -> dict[str, Any]:
    try:
        scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise _unreadable(folder) from None
    if not isinstance(scores, dict) or scores.get("schema") != SCORES_SCHEMA or not is_whole(scores):
        raise _unreadable(folder)
    return scores


def _unreadable(folder: Path) -> UserError:
    return UserError(f"{folder}: its results are missing, damaged or of another version; see vera-local score {folder}")


def other_bundle(results: Sequence[Results]) -> list[str]:
    """Where bundles differ from the first's, in words; empty: one instrument made all ratings."""
    return [told for other in results[1:] for told in _differing(results[0], other, "bundle", _bundle)]


def other_chatbot(results: Sequence[Results]) -> list[str]:
    """Where chatbots differ from the first's, or are not known, in words."""
    unknown = [f"{r.folder} does not say which chatbot it tested" for r in results if "chatbot" not in r.identity]
    return unknown or [told for other in results[1:] for told in _differing(results[0], other, "chatbot", _chatbot)]


def other_judges(results: Sequence[Results], judges: Sequence[str]) -> list[str]:
    """Where these judges differ from the first's, or who is missing, in words."""
    return [told for other in results[1:] for j in judges for told in _other_judge(results[0], other, j)]


def other_conditions(results: Sequence[Results]) -> list[str]:
    """Where runs differ beside bundle and chatbot, in words: messages, simulator, and what else shapes a conversation.

    Not how many conversations there are, nor whose or of which seed; a pool says nothing of its runs here.
    """
    return [told for other in results[1:] for told in _other_conditions(results[0], other)]


def _other_conditions(first: Results, other: Results) -> list[str]:
    if POOLED in (first.identity.keys() | other.identity.keys()):
        return []
    return _differing(first, other, "conditions", _conditions)


def _conditions(results: Results) -> Any:
    return {key: its for key, its in results.identity.items() if key not in _NO_CONDITION}


def _other_judge(first: Results, other: Results, judge: str) -> list[str]:
    if missing := [r.folder for r in (first, other) if judge not in r.judges]:
        return [f"{missing[0]} has no ratings by {judge}"]
    return _differing(first, other, f"judge {judge}", lambda r: _members(r, judge))


def _members(results: Results, judge: str) -> Mapping[str, Any]:
    """What a judge is; of several joined to one, what each of them is."""
    members = results.juries.get(judge, {}).get("members", ())
    if not members:
        return {judge: results.begun["judges"].get(judge)}
    return {name: its for member in members for name, its in _members(results, member).items()}


def _bundle(results: Results) -> Any:
    return results.identity["bundle"]


def _chatbot(results: Results) -> Any:
    return results.identity["chatbot"]


def _differing(first: Results, other: Results, what: str, part: Any) -> list[str]:
    found = differing(part(first), part(other))
    if not found:
        return []
    told = "; ".join(f"{key} is {short(one, 40)} and {short(two, 40)}" for key, one, two in found[:2])
    more = f" (and {len(found) - 2} more)" if len(found) > 2 else ""
    return [f"{what} of {first.folder} and {other.folder}: {told}{more}"]


def refuse(differences: Sequence[str], *, force: bool, purpose: str) -> None:
    """UserError with the first difference unless `force`; `purpose`: what is then not possible."""
    if differences and not force:
        more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
        raise UserError(f"These cannot be {purpose}: {differences[0]}{more}; use --force to do it all the same")
