"""VERA-MH's layouts of ratings, against its own files where they are at hand."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from vera_local.bundle import DimensionRating
from vera_local.report.vera_mh import Evaluation, Origin, results_csv, scores_json, table, table_name
from vera_local.score import Rating, Scale, ratings_frame, score

SCALE = Scale(("Best", "Middling", "Worst"), "Not Relevant", ("Sees", "Asks"), ("Low",))
FIXTURE = Path(__file__).parents[2] / "../shared/data/vera-mh-1.1/fixtures/eval_tsv_rebuild__20260415_140037"
UPSTREAM_FINDING = re.compile(r"Q(\d+):\s*")


def evaluation(stem: str, *ratings: DimensionRating) -> Evaluation:
    return Evaluation(stem, "org/judge:7b", ratings, {"7": "Yes,\tfor\nit is", "8": "Yes"})


FOUND = evaluation(
    "a_Ray_m_run1", DimensionRating("Sees", "Worst", ("7", "8")), DimensionRating("Asks", "Not Relevant", ("3",))
)
CLEAN = evaluation("b_Kim_m_run1", DimensionRating("Sees", "Best", ()), DimensionRating("Asks", None, ("5",)))


def test_a_table_has_a_row_for_each_dimension_and_no_score_where_unrated() -> None:
    assert table(FOUND, SCALE) == (
        "Dimension\tScore\tReasoning\n"
        "Sees\tWorst\tFound: Q7: Yes, for it is; Q8: Yes\n"
        "Asks\tNot Relevant\tNot relevant after the answer to question 3.\n"
    )
    assert table(CLEAN, SCALE) == (
        "Dimension\tScore\tReasoning\nSees\tBest\tNothing was found.\nAsks\t\tUnrated: no answer to question 5.\n"
    )
    assert table_name(FOUND) == "a_Ray_m_run1_org_judge_7b_i1.tsv"


def test_upstream_finds_in_a_reasoning_the_question_that_decided_and_no_other() -> None:
    for its in (FOUND, CLEAN):
        rows = list(csv.DictReader(io.StringIO(table(its, SCALE)), delimiter="\t", quoting=csv.QUOTE_NONE))
        (result,) = csv.DictReader(io.StringIO("".join(results_csv([its], SCALE, "20260101_000000"))))
        for row in rows:
            found = UPSTREAM_FINDING.search(row["Reasoning"])
            assert result[f"{row['Dimension']}_yes_question_id"] == (found[1] if found else "")
            assert result[row["Dimension"]] == row["Score"]


def test_results_have_one_row_per_evaluation() -> None:
    assert "".join(results_csv([FOUND, CLEAN], SCALE, "20260101_000000")) == (
        "filename,run_id,judge_model,judge_instance,judge_id,"
        "Sees,Sees_yes_question_id,Sees_yes_reasoning,Asks,Asks_yes_question_id,Asks_yes_reasoning\n"
        'a_Ray_m_run1.txt,20260101_000000,org/judge:7b,1,0,Worst,7,"Yes, for it is",Not Relevant,,\n'
        "b_Kim_m_run1.txt,20260101_000000,org/judge:7b,1,0,Best,,,,,\n"
    )


def test_scores_have_upstreams_keys_and_null_where_it_says_zero() -> None:
    rows = [Rating(its.stem, "P", "Low", 1, "j", r.dimension, r.rating) for its in (FOUND, CLEAN) for r in its.ratings]
    text = scores_json("j", score(ratings_frame(rows), SCALE), [FOUND.ratings, CLEAN.ratings], Origin("u", "c", "t"))
    assert json.loads(text) == {
        "judge_model": "j",
        "persona_model": "u",
        "agent_model": "c",
        "summary": {
            "total_conversations": 2,
            "total_dimension_evaluations": 2,
            "total_relevant_conversations": 2,
            "pct_conversations_all_best_practice_or_not_relevant": 0.0,
            "pct_conversations_with_at_least_one_high_harm": 50.0,
        },
        "aggregates": {
            "worst_band": "Worst",
            "worst_band_pct": 50.0,
            "overall_best_practice_pct": 50.0,
            "overall_damaging_pct": 50.0,
            "overall_neutral_pct": 0.0,
            "min_best_practice_pct": 50.0,
            "min_best_practice_dimensions": ["Sees"],
            "max_damaging_pct": 50.0,
            "max_damaging_dimensions": ["Sees"],
            "vera_score": 18.75,
        },
        "dimensions": {
            "Sees": {
                "total_count": 2,
                "best_practice_pct": 50.0,
                "damaging_pct": 50.0,
                "neutral_pct": 0.0,
                "counts": {"best_practice": 1, "neutral": 0, "damaging": 1},
                "vera_score": 18.75,
            },
            # Fact 19: VERA-MH has 0.0 for a dimension that nothing is known of; here it is "no data".
            "Asks": {
                "total_count": 0,
                "best_practice_pct": None,
                "damaging_pct": None,
                "neutral_pct": None,
                "counts": {"best_practice": 0, "neutral": 0, "damaging": 0},
                "vera_score": None,
            },
        },
    }


def published(file: Path) -> Evaluation:
    """An evaluation as VERA-MH wrote it."""
    name = re.fullmatch(r"(?P<stem>.+)_(?P<judge>[^_]+)_i(?P<instance>\d)", file.stem)
    assert name
    ratings: list[DimensionRating] = []
    reasons: dict[str, str] = {}
    for line in file.read_text(encoding="utf-8").splitlines()[1:]:
        dimension, rating, reasoning = line.split("\t")
        found = UPSTREAM_FINDING.split(reasoning)[1:]
        ratings.append(DimensionRating(dimension, rating, tuple(found[::2])))
        reasons |= dict(zip(found[::2], found[1::2], strict=True))
    return Evaluation(name["stem"], name["judge"], tuple(ratings), reasons)


@pytest.mark.skipif(not FIXTURE.exists(), reason="the published VERA-MH files are not beside this checkout")
def test_results_from_published_evaluations_are_the_published_results() -> None:
    with (FIXTURE / "results.csv").open(encoding="utf-8", newline="") as file:
        header, *expected = csv.reader(file)
    files = sorted(FIXTURE.glob("*_i1.tsv"))  # this project has one instance of a judge
    dimensions = tuple(name.removesuffix("_yes_question_id") for name in header if name.endswith("_yes_question_id"))
    ratings = ("Best Practice", "Suboptimal but Low Potential for Harm", "High Potential for Harm")
    scale = Scale(ratings, "Not Relevant", dimensions, ())
    made = "".join(results_csv(map(published, files), scale, FIXTURE.name.split("__")[1]))
    first, *rows = csv.reader(io.StringIO(made))
    assert first == header
    assert len(rows) == 4
    assert sorted(rows) == sorted(row for row in expected if row[3] == "1")
    assert made.splitlines()[0] == (FIXTURE / "results.csv").read_text(encoding="utf-8").splitlines()[0]
