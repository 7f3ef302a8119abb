"""Runs side by side, and the judges of one run: who is compared with whom, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from polars.exceptions import PanicException

from tests.run.scored import BUNDLE, JUDGE, scored
from vera_local.errors import UserError
from vera_local.run.comparing import compare_judges, compare_runs

GOOD: dict[str, list[str | None]] = {f"P{i}": ["good", "good"] for i in range(12)}
BAD: dict[str, list[str | None]] = {f"P{i}": ["bad", "fair"] for i in range(12)}


def test_runs_are_compared_by_the_judges_they_share(tmp_path: Path) -> None:
    runs = [
        scored(tmp_path / "a", {"j": GOOD, "k": GOOD}, chatbot="one"),
        scored(tmp_path / "b", {"j": BAD, "m": BAD}, chatbot="two"),
    ]
    compared = compare_runs(runs)
    assert [one.judge for one in compared.judges] == ["j"]
    assert compared.chatbots == {"a": "one", "b": "two"}
    assert compared.notes == ("Not compared, for they have not rated every run: k, m.",)
    assert compared.judges[0].comparison.paired == {"b": True}
    (score,) = [
        d for d in compared.judges[0].comparison.differences if d.dimension == "Care" and d.statistic == "vera_score"
    ]
    assert score.apart.value == "lower" and score.value == -87.5


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("judges", [1]),
        ("judges", {"j": "x"}),
        ("cards", {"j": "x"}),
        ("cards", {"j": {}}),
        ("juries", []),
        ("bundle", 1),
    ],
)
def test_scores_that_are_none_are_told(tmp_path: Path, key: str, value: object) -> None:
    run = scored(tmp_path / "a", {"j": GOOD, "k": BAD})
    scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    (run / "scores.json").write_text(json.dumps(scores | {key: value}), encoding="utf-8")
    with pytest.raises(
        UserError, match=r"its results are missing, damaged or of another version; see vera-local score"
    ):
        compare_judges(run)


def test_a_table_at_which_polars_panics_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = scored(tmp_path / "a", {"j": GOOD, "k": BAD})

    def panicking(file: Path) -> None:
        raise PanicException("assertion failed")

    monkeypatch.setattr("polars.read_parquet", panicking)
    with pytest.raises(UserError, match="its results are missing, damaged or of another version"):
        compare_judges(run)


def test_conditions_that_differ_beside_the_chatbot_are_told(tmp_path: Path) -> None:
    one, two = (scored(tmp_path / n, {"j": GOOD}, simulator=n, chatbot=n) for n in ("a", "b"))
    (note,) = compare_runs([one, two]).notes
    assert note == f'More than the chatbot differs: conditions of {one} and {two}: simulator.model is "a" and "b".'
    assert compare_runs([one, scored(tmp_path / "c", {"j": GOOD}, simulator="a")]).notes == ()


def test_runs_with_folders_of_one_name_keep_apart(tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
    runs = [scored(tmp_path / "x" / "run", {"j": GOOD}), scored(tmp_path / "y" / "run", {"j": BAD})]
    assert list(compare_runs(runs).folders) == [str(run) for run in runs]


def test_other_bundles_and_judges_are_refused_unless_forced(tmp_path: Path) -> None:
    one = scored(tmp_path / "a", {"j": GOOD})
    two = scored(tmp_path / "b", {"j": BAD}, bundle=BUNDLE | {"version": "2.0"})
    three = scored(tmp_path / "c", {"j": BAD}, judges={"j": JUDGE | {"files": {"weights": "w2"}}})
    with pytest.raises(UserError, match=r'cannot be compared: bundle of .*version is "1.0" and "2.0"'):
        compare_runs([one, two])
    with pytest.raises(UserError, match=r"judge j of .*files.weights"):
        compare_runs([one, three])
    assert len(compare_runs([one, two], force=True).forced) == 1


def test_no_common_judge_an_unknown_one_and_one_run_twice(tmp_path: Path) -> None:
    one, two = scored(tmp_path / "a", {"j": GOOD}), scored(tmp_path / "b", {"k": BAD})
    with pytest.raises(UserError, match="No judge has rated all of these runs"):
        compare_runs([one, two])
    with pytest.raises(UserError, match=r"--judge z: .*a has no ratings by it; name one of: j"):
        compare_runs([one, two], ["z"])
    with pytest.raises(UserError, match="is named twice; name each run once"):
        compare_runs([one, one])


def test_judges_of_one_run_are_compared_with_the_first(tmp_path: Path) -> None:
    run = scored(
        tmp_path / "a", {"j": GOOD, "k": BAD, "jury": BAD}, juries={"jury": {"members": ["j", "k"], "rule": "most"}}
    )
    compared = compare_judges(run)
    assert [(pair.first, pair.second) for pair in compared.pairs] == [("j", "k"), ("j", "jury")]
    care = compared.pairs[0].changes.dimensions["Care"]
    assert (care.both, care.stricter.count, care.direction) == (24, 24, "stricter")
    assert compared.pairs[0].comparison.paired == {"k": True}
    assert [(p.first, p.second) for p in compare_judges(run, ["k", "j"]).pairs] == [("k", "j")]
    assert [(p.first, p.second) for p in compare_judges(run, ["k"]).pairs] == [("k", "j"), ("k", "jury")]


def test_judges_of_conversations_without_a_persona_are_paired(tmp_path: Path) -> None:
    run = scored(tmp_path / "a", {"j": {"": ["good"] * 12}, "k": {"": ["bad", *["good"] * 11]}})
    (pair,) = compare_judges(run).pairs
    assert (pair.comparison.paired, pair.comparison.shared) == ({"k": True}, {"k": 12})


def test_one_judge_or_no_shared_conversation_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has one judge \(j\); name a second run, or add a judge"):
        compare_judges(scored(tmp_path / "a", {"j": GOOD}))
    apart = scored(tmp_path / "b", {"j": {"P1": ["good"]}, "k": {"P2": ["good"]}})
    with pytest.raises(UserError, match="j and k have rated no conversation in common"):
        compare_judges(apart)
