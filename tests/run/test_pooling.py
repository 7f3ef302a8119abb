"""Pools: personas join across runs, and what cannot be added up is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.run.scored import BUNDLE, JUDGE, SCALE, scored
from vera_local.bundle import load_bundle
from vera_local.errors import UserError
from vera_local.run.evaluate import must_hold_run
from vera_local.run.pooling import Pooled, pool_runs
from vera_local.run.results import read_results
from vera_local.score import Grouping

ONE: dict[str, list[str | None]] = {"Ana": ["good", "bad"], "Bo": ["fair", "n/a"], "Cy": ["good", "good"]}
TWO: dict[str, list[str | None]] = {"Ana": ["bad"], "Bo": [None], "Dee": ["good"]}


def pool(*folders: Path, out: Path, force: bool = False, by: dict[str, Grouping] | None = None) -> Pooled:
    return pool_runs(folders, out, load_bundle("suicide_risk"), by or {}, force=force)


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    return scored(tmp_path / "a", {"j": ONE}), scored(tmp_path / "b", {"j": TWO}, simulator="other")


def test_counts_are_added_and_personas_join(two: tuple[Path, Path], tmp_path: Path) -> None:
    pooled = pool(*two, out=tmp_path / "pool")
    scores = pooled.scores["j"]
    assert scores.dimensions["Care"].counts == {"good": 4, "fair": 1, "bad": 2}
    assert (scores.dimensions["Care"].not_relevant, scores.dimensions["Care"].unrated) == (1, 1)
    assert (scores.conversations, scores.personas) == (9, 4), "Ana and Bo are in both runs"
    assert [(s["label"], s["simulator"]) for s in pooled.sources] == [("a", "sim"), ("b", "other")]


def test_the_folder_reads_back_as_results(two: tuple[Path, Path], tmp_path: Path) -> None:
    pooled = pool(*two, out=tmp_path / "pool")
    results = read_results(tmp_path / "pool")
    assert (results.chatbot, results.judges, results.group_column) == ("bot", ("j",), "Risk")
    assert results.scale == SCALE
    assert set(results.ratings["conversation"]) >= {"a/Ana-1", "b/Ana-1"}
    (decision,) = [d for d in pooled.scores["j"].decisions if d.rating == "bad"]
    assert (decision.decided, decision.examples) == (2, ("a/Ana-2", "b/Ana-1"))
    assert json.loads((tmp_path / "pool" / "scores.json").read_text())["judges"]["j"]["conversations"] == 9
    assert pl.read_csv(tmp_path / "pool" / "scores.csv").height > 0


def test_by_another_column(two: tuple[Path, Path], tmp_path: Path) -> None:
    ages = Grouping({"Ana": "30", "Bo": "30", "Cy": "60"}, ("30", "60"))
    by = pool(*two, out=tmp_path / "pool", by={"Age": ages}).scores["j"].by["Age"]
    assert {value: profile.conversations for value, profile in by.items()} == {"30": 6, "60": 2, "Unknown": 1}


def test_the_same_pool_again_is_the_same_and_another_one_is_refused(two: tuple[Path, Path], tmp_path: Path) -> None:
    first = pool(*two, out=tmp_path / "pool")
    assert pool(*two, out=tmp_path / "pool").scores == first.scores
    third = scored(tmp_path / "c", {"j": TWO}, simulator="third")
    with pytest.raises(UserError, match="holds another run or pool; name a new --out"):
        pool(two[0], third, out=tmp_path / "pool")
    with pytest.raises(UserError, match="holds another run or pool"):
        pool(*two, out=two[0])


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"bundle": BUNDLE | {"version": "1.1"}}, 'bundle of .*: version is "1.0" and "1.1"'),
        ({"bundle": BUNDLE | {"files": {"rubric.yaml": "d2"}}}, 'files.rubric.yaml is "d1" and "d2"'),
        ({"chatbot": "another"}, 'chatbot of .*: model is "bot" and "another"'),
        ({"chatbot": None}, "does not say which chatbot it tested"),
        ({"judges": {"j": JUDGE | {"temperature": 1.0}}}, r"judge j of .*temperature is 0.0 and 1.0"),
    ],
)
def test_what_differs_is_refused_unless_forced(tmp_path: Path, other: dict[str, Any], told: str) -> None:
    runs = scored(tmp_path / "a", {"j": ONE}), scored(tmp_path / "b", {"j": TWO}, **({"simulator": "x"} | other))
    with pytest.raises(UserError, match=f"These cannot be pooled: .*{told}"):
        pool(*runs, out=tmp_path / "pool")
    assert not (tmp_path / "pool").exists()
    pooled = pool(*runs, out=tmp_path / "pool", force=True)
    assert len(pooled.forced) == 1
    assert json.loads((tmp_path / "pool" / "manifest.json").read_text())["forced"] == list(pooled.forced)


def test_judges_that_not_all_have_are_refused(tmp_path: Path) -> None:
    runs = scored(tmp_path / "a", {"j": ONE, "k": ONE}), scored(tmp_path / "b", {"j": TWO}, simulator="x")
    with pytest.raises(UserError, match="b has no ratings by k; use --force"):
        pool(*runs, out=tmp_path / "pool")


def test_juries_of_other_members_are_refused(tmp_path: Path) -> None:
    juries = {"jury": {"members": ["j", "k"], "rule": "most"}}
    runs = [
        scored(tmp_path / name, dict.fromkeys(("j", other, "jury"), ONE), simulator=name,
               juries={"jury": {**juries["jury"], "members": ["j", other]}})
        for name, other in (("a", "k"), ("b", "m"))
    ]  # fmt: skip
    with pytest.raises(UserError, match="cannot be pooled"):
        pool(*runs, out=tmp_path / "pool")
    forced = pool(*runs, out=tmp_path / "pool", force=True).forced
    assert any(told.startswith("judge jury of") for told in forced)


def test_a_run_twice_is_refused_even_with_force(two: tuple[Path, Path], tmp_path: Path) -> None:
    copy = scored(tmp_path / "copy", {"j": ONE})
    with pytest.raises(UserError, match="are the same run; pool runs of different simulators or seeds"):
        pool(two[0], copy, out=tmp_path / "pool", force=True)


def test_other_ratings_cannot_be_forced(two: tuple[Path, Path], tmp_path: Path) -> None:
    scale = replace(SCALE, ratings=("good", "bad"))
    other = scored(tmp_path / "c", {"j": {"Ana": ["good"]}}, simulator="x", scale=scale)
    with pytest.raises(UserError, match="different ratings, which cannot be added up"):
        pool(two[0], other, out=tmp_path / "pool", force=True)


def test_a_pool_is_no_run_and_no_part_of_a_pool(two: tuple[Path, Path], tmp_path: Path) -> None:
    pool(*two, out=tmp_path / "pool")
    with pytest.raises(UserError, match="is a pool itself; name the runs that it is of"):
        pool(tmp_path / "pool", two[0], out=tmp_path / "again")
    with pytest.raises(UserError, match="is a pool of runs, which compare can read"):
        must_hold_run(tmp_path / "pool")
    with pytest.raises(UserError, match="name two runs or more to pool"):
        pool(two[0], out=tmp_path / "again")


@pytest.mark.parametrize("file", ["scores.json", "results.parquet", "questions.parquet"])
def test_missing_or_damaged_results_are_told(two: tuple[Path, Path], file: str) -> None:
    (two[0] / file).write_bytes(b"{")
    with pytest.raises(UserError, match="its results are missing, damaged or of another version; see vera-local score"):
        read_results(two[0])
    (two[0] / file).unlink()
    with pytest.raises(UserError, match="missing, damaged"):
        read_results(two[0])


def test_a_folder_without_a_run_or_without_ratings(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no run and no pool"):
        read_results(tmp_path)
    with pytest.raises(UserError, match="has not been judged yet; see vera-local judge"):
        read_results(scored(tmp_path / "a", {}))
