from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.bundle import Action, Do, Option, Question, load_bundle
from vera_local.judge.evidence import evidence_pattern, longest_evidence, read_evidence, rests_on_turns

TURNS = st.lists(st.integers(min_value=1, max_value=120), unique=True, max_size=40).map(lambda n: tuple(sorted(n)))


def question(*options: tuple[str, str | None]) -> Question:
    return Question("1", "D", "?", "", tuple(Option(a, Action(Do.NEXT_QUESTION), severity) for a, severity in options))


@given(TURNS, st.text(st.sampled_from("0123456789, none[]\n"), max_size=12))
def test_whatever_is_written_only_turns_that_exist_are_named(turns: tuple[int, ...], text: str) -> None:
    named = read_evidence(text, turns)
    assert named is None or (set(named) <= set(turns) and len(named) <= 3 and len(set(named)) == len(named))


@given(TURNS, st.data())
def test_what_the_pattern_allows_is_read_and_fits_its_tokens(turns: tuple[int, ...], data: st.DataObject) -> None:
    pattern = re.compile(evidence_pattern(turns).removesuffix("$"))
    named = data.draw(st.lists(st.sampled_from(turns), min_size=1, max_size=3)) if turns else []
    text = ", ".join(map(str, named)) or "none"
    assert pattern.fullmatch(text)
    assert read_evidence(text, turns) == tuple(dict.fromkeys(named))
    assert len(text) + 1 <= longest_evidence(turns)


@given(TURNS, st.integers(min_value=0, max_value=200))
def test_the_pattern_allows_no_turn_that_is_not_there(turns: tuple[int, ...], number: int) -> None:
    allowed = re.fullmatch(evidence_pattern(turns).removesuffix("$"), str(number)) is not None
    assert allowed == (number in turns)


@pytest.mark.parametrize("text", ["", "4", "1,2", "1, 2, 3, 1", "None", " 1", "1, none", "01", "\u0661", "1\n"])
def test_anything_else_is_no_evidence(text: str) -> None:
    assert read_evidence(text, (1, 2, 3)) is None


def test_findings_and_classifications_are_located_and_nothing_else_is() -> None:
    finding = question(("Yes", "high"), ("No", None), ("Not Relevant", None))
    assert [rests_on_turns(finding, answer) for answer in ("Yes", "No", "Not Relevant")] == [True, False, False]
    classes = question(("None", None), ("Some", None))
    assert rests_on_turns(classes, "None") and rests_on_turns(classes, "Some")


def test_in_the_shipped_rubrics_every_finding_is_located() -> None:
    for name in ("suicide_risk", "psychosis"):
        for asked in (q for q in load_bundle(name).rubric.questions if not q.auto):
            for option in asked.options:
                assert rests_on_turns(asked, option.answer) >= (option.severity is not None)
    nine = load_bundle("suicide_risk").rubric.by_id["9"]
    assert all(rests_on_turns(nine, option.answer) for option in nine.options)


def test_outlines_runs_the_pattern_to_every_number_and_no_other() -> None:
    from outlines_core import Index, Vocabulary

    tokens: dict[str | bytes, list[int]] = {
        c: [i] for i, c in enumerate(["n", "o", "e", "1", "2", "3", "0", ", ", "12"])
    }
    vocabulary = Vocabulary(99, tokens)
    index = Index(evidence_pattern((1, 2, 12)), vocabulary)

    def accepts(*ids: int) -> bool:
        state: int | None = index.get_initial_state()
        for id in ids:
            assert state is not None
            state = index.get_next_state(state, id)
            if state is None:
                return False
        return state is not None and index.is_final_state(state)

    assert accepts(3) and accepts(8) and accepts(3, 4) and accepts(0, 1, 0, 2)
    assert accepts(3, 7, 8, 7, 4)
    assert not accepts(5) and not accepts(3, 7) and not accepts(3, 6) and not accepts(3, 7, 3, 7, 3, 7, 3)
