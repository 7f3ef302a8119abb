from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from outlines_core import Guide, Index, Vocabulary

from vera_local.bundle import load_bundle
from vera_local.engine.grammar import pattern_of

SPECIALS = "\\.^$*+?{}[]|()-#&~<>/'\":;,!%@`_= \t\n"
TEXTS = st.text(st.one_of(st.sampled_from(SPECIALS + "aNo"), st.characters(codec="utf-8")), min_size=1, max_size=6)
OPTIONS = st.lists(TEXTS, min_size=1, max_size=5, unique=True)
END = 1_000_000


@given(OPTIONS)
@settings(deadline=None)  # the first one imports outlines
def test_every_option_matches(options: list[str]) -> None:
    assert all(re.fullmatch(pattern_of(options), option) for option in options)


@given(OPTIONS, TEXTS)
def test_nothing_but_the_options_matches(options: list[str], other: str) -> None:
    assume(other not in options)
    assert re.fullmatch(pattern_of(options), other) is None


@given(OPTIONS, st.data())
def test_no_near_miss_of_an_option_matches(options: list[str], data: st.DataObject) -> None:
    option = data.draw(st.sampled_from(options))
    miss = data.draw(st.sampled_from([option[:-1], option[1:], option + option[-1], f"{option} ", option.swapcase()]))
    assume(miss not in options)
    assert re.fullmatch(pattern_of(options), miss) is None


@given(OPTIONS)
@settings(deadline=None, max_examples=50)
def test_a_guided_answer_is_an_option_and_every_option_can_be_given(options: list[str]) -> None:
    assert sorted(guided(options, sorted({c for option in options for c in option} | {"Z"}))) == sorted(options)


@given(st.text("ab", min_size=1, max_size=4), st.lists(st.text("ab", max_size=4), min_size=1, max_size=4), st.data())
@settings(deadline=None, max_examples=50)
def test_options_that_go_on_from_others_can_be_given_by_any_tokens(
    stem: str, endings: list[str], data: st.DataObject
) -> None:
    options = list(dict.fromkeys(stem + ending for ending in endings))
    text = data.draw(st.sampled_from(options))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1)))) if len(text) > 1 else []
    pieces = [text[i:j] for i, j in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    tokens = sorted({"a", "b", *pieces})
    guide = Guide(Index(pattern_of(options), Vocabulary(END, {token: [i] for i, token in enumerate(tokens)})))
    for piece in pieces:
        assert tokens.index(piece) in guide.get_tokens()
        guide.advance(tokens.index(piece))
    assert END in guide.get_tokens()


@pytest.mark.parametrize(
    "options",
    [
        ["No", "Not Relevant"],
        ["Yes", "No", "No, but asked", "No, but asked twice"],
        ["a|b", "a", "b", "(a)", "a.b", "[ab]", "^a$", "\\d", "a{2}", "a-b"],
        ["Ja", "Weiß nicht", "日本", "é", "e\N{COMBINING ACUTE ACCENT}", "\N{SLIGHTLY SMILING FACE}"],
    ],
)
def test_options_that_begin_alike_or_look_like_patterns_are_told_apart(options: list[str]) -> None:
    letters = sorted({c for option in options for c in option} | set("Zx0"))
    pieces = ["No", "Not", " Relevant", ", but", "aa", "ab"]
    assert sorted(set(guided(options, letters + pieces))) == sorted(options)


def test_the_answers_of_the_shipped_rubric_can_be_given_and_nothing_else() -> None:
    for question in load_bundle("suicide_risk").rubric.questions:
        options = [o.answer for o in question.options]
        assert sorted(guided(options, sorted({c for o in options for c in o}))) == sorted(options)


def test_without_an_option_there_is_nothing_to_constrain_to() -> None:
    with pytest.raises(ValueError, match="at least one option"):
        pattern_of([])


def guided(options: list[str], tokens: list[str]) -> Iterator[str]:
    """All texts that a model with these tokens can write, as the engine's backend lets it."""
    vocabulary = Vocabulary(END, {token: [i] for i, token in enumerate(tokens)})
    yield from _continued(Index(pattern_of(options), vocabulary), tokens, ())


def _continued(index: Index, tokens: list[str], said: tuple[int, ...]) -> Iterator[str]:
    guide = Guide(index)
    for token in said:
        guide.advance(token)
    for allowed in guide.get_tokens():
        if allowed == END:
            yield "".join(tokens[i] for i in said)
        else:
            yield from _continued(index, tokens, (*said, allowed))


@given(OPTIONS)
@settings(deadline=None, max_examples=50)  # the first one imports outlines
def test_the_pattern_is_the_one_that_outlines_itself_makes(options: list[str]) -> None:
    types = pytest.importorskip("outlines.types")
    dsl = pytest.importorskip("outlines.types.dsl")
    made = dsl.to_regex(dsl.python_types_to_terms(types.Choice(options)))
    assert pattern_of(options) == f"{made}$"
