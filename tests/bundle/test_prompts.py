"""Templates: what a placeholder is, how it is filled, and which ones each prompt must and may hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.bundle.prompts import Prompts, Template, load_prompts
from vera_local.bundle.source import Source
from vera_local.errors import UserError

COLUMNS = frozenset({"Name", "Treatment / Access"})
TEXTS = {
    "simulator": "{Name} {Treatment / Access} {end_signal}",
    "simulator_short": "{Name}",
    "opening": "Begin.",
    "reminder": "Stay in your part.",
    "reminder_short": "Stay.",
    "chatbot": "Help.",
    "judge_system": "Judge.",
    "judge_transcript": "{fence}{transcript}{fence}",
    "judge_question": "{question}{options}",
    "judge_question_short": "{question}{options}",
}


def load(**changed: str) -> Prompts:
    texts = {**TEXTS, **changed}
    return load_prompts({k: Source(Path(f"{k}.txt"), text.encode()) for k, text in texts.items()}, COLUMNS)


def test_placeholders_are_filled_in_one_pass() -> None:
    template = Template("{a} and {b c / (d) & e-f_g, h.}")
    assert template.placeholders == {"a", "b c / (d) & e-f_g, h."}
    assert template.render({"a": "{b}{a}", "b c / (d) & e-f_g, h.": "x"}) == "{b}{a} and x"


def test_braces_elsewhere_stay() -> None:
    template = Template('{"key": [1]} {} { {a:b} {{a}} {{{a}}} } {x\ny}')
    assert template.placeholders == {"a"}
    assert template.render({"a": "1"}) == '{"key": [1]} {} { {a:b} {a} {1} } {x\ny}'


@given(st.text(), st.text())
def test_inserted_text_arrives_unchanged(first: str, second: str) -> None:
    assert Template("<{a}|{b}>").render({"a": first, "b": second}) == f"<{first}|{second}>"


@given(st.text())
def test_text_with_its_braces_doubled_renders_as_itself(text: str) -> None:
    template = Template(text.replace("{", "{{").replace("}", "}}"))
    assert template.placeholders == frozenset()
    assert template.render({}) == text


def test_a_value_that_lacks_is_an_error() -> None:
    with pytest.raises(KeyError, match="a"):
        Template("{a}").render({"b": ""})


def test_prompts_are_loaded_without_their_last_line_ends() -> None:
    prompts = load(opening="One\r\n\r\ntwo\r\n", judge_question="{question}{guidance}{options}\n\n")
    assert prompts.opening.text == "One\n\ntwo"
    assert prompts.judge_question.text == "{question}{guidance}{options}"
    assert prompts.simulator.placeholders == COLUMNS | {"end_signal"}


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        (
            "simulator",
            "{Nom}",
            "{Nom} is no placeholder of this prompt; use {Name}, {Treatment / Access}, {end_signal}",
        ),
        ("simulator_short", "{name}", "{name} is no placeholder of this prompt; use {Name}"),
        ("opening", "{Name}", "{Name} is no placeholder of this prompt; it takes none: write plain braces twice"),
        ("chatbot", "{Name}", "{Name} is no placeholder of this prompt; it takes none"),
        ("judge_system", "{fence}", "{fence} is no placeholder of this prompt; it takes none"),
        ("judge_transcript", "{transcript}", "the placeholder {fence} is missing; write it"),
        ("judge_transcript", "{fence}", "the placeholder {transcript} is missing; write it"),
        ("judge_transcript", "{fence}{transcript}{Name}", "{Name} is no placeholder of this prompt; use {fence}"),
        ("judge_question", "{options}", "the placeholder {question} is missing; write it"),
        ("judge_question", "{question}", "the placeholder {options} is missing; write it"),
    ],
)
def test_a_wrong_placeholder_names_file_and_remedy(key: str, text: str, sentence: str) -> None:
    with pytest.raises(UserError) as error:
        load(**{key: text})
    assert str(error.value).startswith(f"{key}.txt: {sentence}")


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(UserError, match=r"^opening\.txt is empty; write the prompt in it\.$"):
        load(opening=" \n")
