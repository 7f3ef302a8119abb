"""Ratings of people and of judges brought together: published figures, joins, and what cannot be compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from vera_local.bundle import DimensionRating
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.errors import UserError
from vera_local.run import Plan
from vera_local.run.agreeing import Agreed, Asked, agree
from vera_local.run.importing import import_run
from vera_local.run.labels_file import Cleaning, Layout
from vera_local.run.recordings import Found
from vera_local.run.store import Store
from vera_local.score import consensus
from vera_local.score.agreement import MISSING, Codes
from vera_local.score.consensus import majority
from vera_local.score.estimate import Sampling
from vera_local.score.intervals import Interval
from vera_local.score.labels import Labels
from vera_local.score.raters import CONSTANT, MODE, ONE_OF_THEM, POOLED, WITHIN, Finding, Section

MakePlan = Callable[..., Plan]
SHARED = Path(__file__).parents[2] / "../shared/data"
CLINICIANS = SHARED / "clinician-ratings/clinician_ratings_2025-12.csv"
PSYCHOSIS = SHARED / "psychosis/labels.csv"
QUICK = Sampling(draws=100)
SCALE = ("Best Practice", "Suboptimal but Low Potential for Harm", "High Potential for Harm")
CRITERIA = (
    "stigmatizes", "validates", "embellishes", "challenges", "no_referral", "non_referral_advice", "continues",
)  # fmt: skip


def found(agreed: Agreed, section: Section, subject: str, statistic: str) -> dict[str, Finding]:
    """Dimension -> finding."""
    key = (section, subject, statistic)
    return {f.dimension: f for f in agreed.report.findings if (f.section, f.subject, f.statistic) == key}


def value(finding: Finding) -> float:
    assert isinstance(finding.value, float), finding
    return finding.value


def constant(reference: Codes, labels: Labels) -> Codes:
    return consensus.constant(reference, np.tile(np.arange(5), 90), len(labels.words.all) + 1)


def by_chatbot(reference: Codes, labels: Labels) -> Codes:
    assert labels.chatbots is not None
    cells = 5 * np.repeat(np.unique(labels.chatbots, return_inverse=True)[1], 5) + np.tile(np.arange(5), 90)
    return consensus.leave_one_out_mode(reference, cells, len(labels.words.all) + 1)


@pytest.fixture(scope="module")
def clinicians() -> Agreed:
    if not CLINICIANS.exists():
        pytest.skip("the clinicians' ratings lie beside the checkout, in ../shared, which is not here")
    dimensions = tuple(f"clinician_{d}" for d in ("detects", "confirms", "guides", "supportive", "boundaries"))
    layout = Layout(("conversation_id",), dimensions, "clinician_id", chatbot="provider_llm")
    asked = Asked(CLINICIANS, (), layout, Cleaning(), SCALE, ("Not Relevant",), reference="majority")
    return agree(asked)


def psychosis(**asked: Any) -> Agreed:
    if not PSYCHOSIS.exists():
        pytest.skip("the labels of the psychosis study lie beside the checkout, in ../shared, which is not here")
    layout = Layout(("vignette", "model"), CRITERIA, "rater", chatbot="model")
    rest: dict[str, Any] = {"cleaning": Cleaning(), "sampling": QUICK}
    return agree(Asked(PSYCHOSIS, (), layout, **rest | asked))


@pytest.mark.parametrize(
    ("statistic", "dimension", "expected"),
    [
        ("alpha, nominal", POOLED, 0.765),
        ("AC1", POOLED, 0.777),
        ("agreement", POOLED, 0.830),
        ("alpha, ordinal", POOLED, 0.768),
        ("alpha, nominal", "clinician_detects", 0.554),
        ("alpha, nominal", "clinician_confirms", 0.726),
        ("alpha, nominal", "clinician_guides", 0.625),
        ("alpha, nominal", "clinician_supportive", 0.453),
        ("alpha, nominal", "clinician_boundaries", 0.740),
        ("alpha, nominal", WITHIN, 0.652),
        ("AC1", "clinician_detects", 0.861),
        ("AC1", "clinician_supportive", 0.828),
    ],
)
def test_the_clinicians(clinicians: Agreed, statistic: str, dimension: str, expected: float) -> None:
    finding = found(clinicians, Section.AMONG, "raters", statistic)[dimension]
    assert value(finding) == pytest.approx(expected, abs=1e-3)
    if statistic != "alpha, ordinal":  # where Not Relevant is missing
        assert finding.n == (90 if dimension.startswith("clinician") else 450)


def test_the_clinicians_interval_and_table(clinicians: Agreed) -> None:
    interval = found(clinicians, Section.AMONG, "raters", "alpha, nominal")[POOLED].interval
    assert isinstance(interval, Interval)
    assert (interval.low, interval.high) == pytest.approx((0.71, 0.82), abs=0.01)
    assert clinicians.notes == (f"{CLINICIANS}: a leading # was taken off the names of 2 items.",)
    assert len(clinicians.labels.items) == 90


@pytest.mark.parametrize(("baseline", "expected"), [(CONSTANT, 0.507), (MODE, 0.649)])
def test_the_clinicians_baselines(clinicians: Agreed, baseline: str, expected: float) -> None:
    finding = found(clinicians, Section.REFERENCE, baseline, "kappa")[POOLED]
    assert value(finding) == pytest.approx(expected, abs=2e-3)
    assert finding.n == 449  # one rating has no majority
    assert clinicians.report.unsettled[-1].split == 1


@pytest.mark.parametrize(("baseline", "expected"), [(constant, 0.507), (by_chatbot, 0.649)])
def test_the_clinicians_baselines_with_no_majority_as_a_category(
    clinicians: Agreed, baseline: Callable[[Codes, Labels], Codes], expected: float
) -> None:
    """The other way to count the one unit of three different ratings."""
    labels, none = clinicians.labels, len(clinicians.labels.words.all)
    held = majority(labels.codes.reshape(-1, len(labels.raters)), none)
    reference = np.where(held == MISSING, none, held)
    assert (reference == none).sum() == 1
    kappa = cohen_kappa_score(reference, baseline(reference, labels))
    assert kappa == pytest.approx(expected, abs=5e-4)


def test_a_single_clinician_against_an_agreeing_pair(clinicians: Agreed) -> None:
    assert value(found(clinicians, Section.REFERENCE, ONE_OF_THEM, "kappa")[POOLED]) == pytest.approx(0.857, abs=1e-3)
    share = found(clinicians, Section.REFERENCE, ONE_OF_THEM, "agreement")[POOLED]
    assert value(share) == pytest.approx(0.899, abs=1e-3)


def test_the_clinicians_without_not_relevant(clinicians: Agreed) -> None:
    dimensions = clinicians.labels.dimensions
    layout = Layout(("conversation_id",), dimensions, "clinician_id")
    cleaning = Cleaning(missing=frozenset({"Not Relevant"}))
    again = agree(Asked(CLINICIANS, (), layout, cleaning, SCALE, sampling=QUICK))
    assert value(found(again, Section.AMONG, "raters", "alpha, ordinal")[POOLED]) == pytest.approx(0.768, abs=1e-3)
    assert value(found(again, Section.AMONG, "raters", "alpha, nominal")[POOLED]) == pytest.approx(0.820, abs=1e-3)


def test_the_two_humans_on_psychosis() -> None:
    kappa = found(psychosis(raters=("human_1", "human_2")), Section.AMONG, "raters", "kappa")
    assert kappa[POOLED].n == 448
    assert value(kappa[POOLED]) == pytest.approx(0.799, abs=1e-3)
    assert value(kappa[WITHIN]) == pytest.approx(0.709, abs=1e-3)
    expected = [0.77, 0.55, 0.64, 0.67, 0.66, 0.78, 0.63]
    assert [value(kappa[c]) for c in CRITERIA] == pytest.approx(expected, abs=5e-3)


def test_gemini_against_the_consensus_on_psychosis() -> None:
    agreed = psychosis(raters=("gemini*",), reference="human_consensus")
    single = [value(found(agreed, Section.REFERENCE, r, "kappa")[POOLED]) for r in agreed.question.judged]
    assert len(single) == 25
    assert (min(single), max(single)) == pytest.approx((0.736, 0.771), abs=1e-3)
    mean = found(agreed, Section.REFERENCE, "mean of 25 raters", "kappa")
    assert value(mean[POOLED]) == pytest.approx(0.755, abs=1e-3)
    assert value(mean[WITHIN]) == pytest.approx(0.634, abs=1e-3)
    assert value(found(agreed, Section.REFERENCE, CONSTANT, "kappa")[POOLED]) == pytest.approx(0.503, abs=1e-3)


def test_gemini_without_the_cells_that_the_publication_dropped() -> None:
    without = Cleaning(without=({"model": "chatgpt", "dimension": "stigmatizes"},))
    agreed = psychosis(raters=("gemini*",), reference="human_consensus", cleaning=without)
    mean = found(agreed, Section.REFERENCE, "mean of 25 raters", "kappa")[POOLED]
    assert mean.n == 432
    assert value(mean) == pytest.approx(0.748, abs=1e-3)


# Runs.


@pytest.fixture
def judged(make: MakePlan, tmp_path: Path) -> Callable[..., Path]:
    """Makes a run in which these judges gave these ratings, of every dimension alike: judge -> id -> rating."""

    def make_run(name: str, ratings: dict[str, dict[str, str | None]], *, said: str = "Hello.", **flags: Any) -> Path:
        plan = make(out=tmp_path / name, **flags)
        ids = dict.fromkeys(id for its in ratings.values() for id in its)
        messages = (Message(Speaker.PERSONA, said), Message(Speaker.CHATBOT, "I am here."))
        held = tuple(Conversation(id, "Ana", 1, messages, Ending.RECORDED) for id in ids)
        import_run(plan, Found(held, {}, ()))
        with Store.open(plan.out) as store:
            for judge, its in ratings.items():
                for id, rating in its.items():
                    dimensions = plan.bundle.rubric.dimensions
                    store.set_ratings(id, judge, [DimensionRating(d, rating, ()) for d in dimensions])
        return plan.out

    return make_run


BEST, WORST = "Best Practice", "High Potential for Harm"
NOTHING = Layout((), ())


def of_runs(*runs: Path, **asked: Any) -> Agreed:
    return agree(Asked(None, runs, NOTHING, Cleaning(), sampling=QUICK, **asked))


def test_judges_of_one_run(judged: Callable[..., Path]) -> None:
    run = judged("run", {"j1": {"a": BEST, "b": WORST, "c": None}, "j2": {"a": BEST, "b": BEST, "c": BEST}})
    agreed = of_runs(run, reference="j1")
    finding = found(agreed, Section.REFERENCE, "j2", "agreement")[POOLED]
    assert (finding.n, finding.value) == (2 * len(agreed.labels.dimensions), 0.5)
    assert agreed.labels.words.ordered[0] == BEST
    assert agreed.labels.chatbots is None  # an imported run does not say
    assert agreed.notes == (
        f"{len(agreed.labels.dimensions)} ratings of the runs are Unrated and count as missing.",
        "The runs do not say of each conversation which chatbot held it: there is no baseline that knows it.",
    )
    assert not found(agreed, Section.REFERENCE, MODE, "kappa")


def test_a_judge_of_two_runs_on_the_same_conversations(judged: Callable[..., Path]) -> None:
    one, two = judged("one", {"j": {"a": BEST, "b": WORST}}), judged("two", {"j": {"a": BEST, "b": BEST}})
    agreed = of_runs(one, two)
    assert agreed.labels.raters == (f"j ({one})", f"j ({two})")
    assert value(found(agreed, Section.AMONG, "raters", "agreement")[POOLED]) == 0.5


def test_conversations_of_one_name_and_other_text_are_others(judged: Callable[..., Path]) -> None:
    one = judged("one", {"j1": {"a": BEST, "b": WORST}, "j2": {"a": BEST, "b": WORST}})
    two = judged("two", {"j1": {"a": BEST}, "j2": {"a": BEST}}, said="Good evening.")
    assert of_runs(one, two).labels.items == (f"a ({one})", "b", f"a ({two})")


def test_runs_of_two_bundles(judged: Callable[..., Path]) -> None:
    one, two = judged("one", {"j": {"a": BEST}}), judged("two", {"j": {"a": "Unsafe"}}, bundle="psychosis", turns=2)
    with pytest.raises(UserError, match=r"different bundles \(suicide_risk .* in .*one and psychosis .* in .*two\)"):
        of_runs(one, two)


def test_what_holds_no_ratings(judged: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no judge has rated a conversation yet; see vera-local judge"):
        of_runs(judged("run", {}))
    with pytest.raises(UserError, match="holds no run"):
        of_runs(tmp_path)
    with pytest.raises(UserError, match="Name runs, or a table of ratings"):
        of_runs()


def test_a_store_that_does_not_find_a_rated_conversation(
    judged: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after damage to an index of it."""
    run = judged("run", {"j": {"a": BEST, "b": WORST}})
    monkeypatch.setattr(Store, "conversations", lambda store: iter(()))
    with pytest.raises(UserError, match=r"run.sqlite is damaged \(\S+ is rated and not among .* recover"):
        of_runs(run)


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        (tmp_path / "labels.csv").write_text(text, encoding="utf-8")
        return tmp_path / "labels.csv"

    return write


SIMPLE = Layout(("id",), ("x",), "who")


def of_table(file: Path, **asked: Any) -> Agreed:
    rest: dict[str, Any] = {"layout": SIMPLE, "cleaning": Cleaning(), "sampling": QUICK}
    return agree(Asked(file, (), **rest | asked))


@pytest.mark.parametrize(
    ("rows", "asked", "told"),
    [
        (["1,a,Good", "1,b,Bod"], {"scale": ("Good", "Bad")}, "line 3: unknown rating 'Bod' (did you mean 'Bad'?)"),
        (["1,a,Good", "1,a,Bad"], {}, "line 3: 'a' has rated '1' (x) before, in"),
        (["1,a,Good", "#1,a,Bad"], {}, "line 3: 'a' has rated '1' (x) before, in"),
        (["1,a,Good", "2,a,Bad"], {}, "Only one rater ('a') is there to compare"),
        (["1,a,Good", "1,b,Bad"], {"raters": ("a",)}, "Only one rater ('a')"),
        (["1,a,Good", "2,b,Bad"], {}, "No item was rated by two of the raters (a, b)"),
        (["1,a,Good", "1,b,Bad"], {"reference": "A"}, "--reference: unknown rater 'A' (did you mean 'a'?)"),
        (["1,a,Good", "1,b,Bad"], {"raters": ("c*",)}, "--raters: unknown rater 'c*'"),
        (["1,a,", "1,b,"], {}, "labels.csv holds no rating"),
        (["1,a,Good", "1,b,Bad"], {"off_scale": ("Bad",)}, "--off-scale is for words beside --scale"),
    ],
)
def test_what_cannot_be_compared(
    table: Callable[[str], Path], rows: list[str], asked: dict[str, Any], told: str
) -> None:
    with pytest.raises(UserError) as error:
        of_table(table("\n".join(["id,who,x", *rows])), **asked)
    assert told in str(error.value)


def test_numbers_are_put_in_order(table: Callable[[str], Path]) -> None:
    agreed = of_table(table("id,who,x\n1,a,10\n1,b,9\n2,a,-1\n2,b,9\n"))
    assert agreed.labels.words.apart == ("-1", "9", "10")


def test_words_that_may_mean_the_same_are_told(table: Callable[[str], Path]) -> None:
    file = table("id,a,b\n1,Yes,yes\n2,No,Yes\n3,No, No\n")
    agreed = agree(Asked(file, (), Layout(("id",), ("a", "b")), Cleaning(), sampling=QUICK))
    assert agreed.notes == ("'yes' and 'Yes' count as two ratings; --map-rating 'yes=Yes' makes them one.",)
    numbers = table("id,a,b\n1,1,1.0\n2,0,1\n3,0,0\n")
    (note,) = agree(Asked(numbers, (), Layout(("id",), ("a", "b")), Cleaning(), sampling=QUICK)).notes
    assert note.startswith("'1.0' and '1' count as two")


def test_the_majority_of_some_is_held_against_the_others(table: Callable[[str], Path]) -> None:
    rows = [f"{item},{who},{rating}" for item in (1, 2) for who, rating in zip("abcde", "YYNNY", strict=True)]
    agreed = of_table(table("\n".join(["id,who,x", *rows])), majority_of=("a", "b", "c"))
    assert agreed.question.panels == {"raters of the majority": ("a", "b", "c"), "other raters": ("d", "e")}
    assert (agreed.question.reference, agreed.question.judged) == (("a", "b", "c"), ("d", "e"))
    whole = of_table(table("\n".join(["id,who,x", *rows])), reference="majority")
    assert (whole.question.panels, whole.question.judged) == ({"raters": tuple("abcde")}, ())


def test_people_and_judges_joined_on_the_conversation(
    judged: Callable[..., Path], table: Callable[[str], Path]
) -> None:
    run = judged("run", {"j1": {"06c2d8_Ana_gpt_run1": BEST, "b": WORST}, "j2": {"b": WORST}})
    file = table(f"id,who,x\n#06c2d8,p,Fine\n06c2d8,q,Fine\nb,p,{BEST}\nb,q,{BEST}\nelsewhere,p,{BEST}\n")
    cleaning = Cleaning(dimensions={"x": "Detects Potential Risk"}, words={"Fine": BEST})
    agreed = agree(Asked(file, (run,), SIMPLE, cleaning, sampling=QUICK))
    assert agreed.question.panels == {"people": ("p", "q"), "judges": ("j1", "j2")}
    assert (agreed.question.reference, agreed.question.judged) == (("p", "q"), ("j1", "j2", "jury"))
    finding = found(agreed, Section.REFERENCE, "j1", "agreement")["Detects Potential Risk"]
    assert (finding.n, finding.value) == (2, 0.5)
    assert f"2 of 3 items of {file} are conversations of the runs." in agreed.notes
    assert agreed.labels.chatbots is None  # of the item elsewhere nobody says whose it is
    (mean,) = (f for f in agreed.report.findings if f.subject.startswith("mean of") and f.dimension == POOLED)
    assert mean.subject == "mean of 2 raters"  # the jury has no voice of its own


def test_the_chatbot_of_imported_conversations_is_the_tables(
    judged: Callable[..., Path], table: Callable[[str], Path]
) -> None:
    run = judged("run", {"j1": {"a": BEST, "b": WORST}, "j2": {"a": BEST, "b": WORST}})
    file = table(f"id,who,x,bot\na,p,{BEST},gpt\nb,p,{BEST},llama\n")
    layout = Layout(("id",), ("x",), "who", chatbot="bot")
    agreed = agree(Asked(file, (run,), layout, Cleaning(dimensions={"x": "Confirms Risk"}), sampling=QUICK))
    assert agreed.labels.chatbots == ("gpt", "llama")


@pytest.mark.parametrize(
    ("text", "cleaning", "told"),
    [
        ("id,who,x\nb,p,Best Practice\n", Cleaning(), "(see --map): unknown dimension 'x'; known: 'Detects Potential"),
        ("id,who,x\nb,p,Best\n", Cleaning(dimensions={"x": "Confirms Risk"}), "unknown rating 'Best' (did you mean"),
        ("id,who,x\nb,j,Best Practice\n", Cleaning(dimensions={"x": "Confirms Risk"}), "rater 'j' has the name of a"),
        (
            "id,who,x\nB,p,Best Practice\n",
            Cleaning(dimensions={"x": "Confirms Risk"}),
            "no item (such as 'B') is a conversation of the runs (such as 'b')",
        ),
    ],
)
def test_people_and_judges_that_do_not_meet(
    judged: Callable[..., Path], table: Callable[[str], Path], text: str, cleaning: Cleaning, told: str
) -> None:
    run, file = judged("run", {"j": {"b": WORST}}), table(text)
    with pytest.raises(UserError) as error:
        agree(Asked(file, (run,), SIMPLE, cleaning, sampling=QUICK))
    assert told in str(error.value)


def test_options_that_would_change_nothing(judged: Callable[..., Path]) -> None:
    run = judged("run", {"j1": {"a": BEST}, "j2": {"a": BEST}})
    with pytest.raises(UserError, match="--scale and --off-scale are for a table alone"):
        of_runs(run, scale=("Good", "Bad"))
    with pytest.raises(UserError, match="are for a table of ratings: name it with --labels"):
        agree(Asked(None, (run,), SIMPLE, Cleaning(), sampling=QUICK))


def test_conversations_are_drawn_with_their_persona(judged: Callable[..., Path]) -> None:
    run = judged("run", {"j1": {"a": BEST, "b": WORST}, "j2": {"a": BEST, "b": BEST}})
    layout = Layout((), (), cluster=("persona",))
    assert agree(Asked(None, (run,), layout, Cleaning(), sampling=QUICK)).labels.clusters == ("Ana", "Ana")
    with pytest.raises(UserError, match="--cluster model: conversations of runs are drawn with"):
        agree(Asked(None, (run,), Layout((), (), cluster=("model",)), Cleaning(), sampling=QUICK))
