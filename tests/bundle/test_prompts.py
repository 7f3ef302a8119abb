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
    "simulator_short": "{Name} {reply}",
    "simulator_examples": "Notes: ill\n\nI am ill.",
    "simulator_notes": "Notes: {Name}\n\nNotes: {Treatment / Access}",
    "opening": "Begin.",
    "reminder": "Stay in your part.",
    "chatbot": "Help.",
    "judge_system": "Judge.",
    "judge_transcript": "{fence}{transcript}{fence}",
    "judge_question": "{question}{options}",
    "judge_question_short": "{options_line}{question}",
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
    assert prompts.persona is not None
    assert prompts.persona.opening.text == "One\n\ntwo"
    assert prompts.judge_question.text == "{question}{guidance}{options}"
    assert prompts.persona.simulator.placeholders == COLUMNS | {"end_signal"}


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        (
            "simulator",
            "{Nom}",
            "{Nom} is no placeholder of this prompt; use {Name}, {Treatment / Access}, {end_signal}",
        ),
        ("simulator_short", "{name}", "{name} is no placeholder of this prompt; use {Name}"),
        ("simulator_notes", "{reply}", "{reply} is no placeholder of this prompt; use {Name}"),
        ("simulator_examples", "{Name}\n\nyes", "{Name} is no placeholder of this prompt; it takes none"),
        ("opening", "{Name}", "{Name} is no placeholder of this prompt; it takes none: write plain braces twice"),
        ("reminder", "{Name}", "{Name} is no placeholder of this prompt; use {message}"),
        ("chatbot", "{Name}", "{Name} is no placeholder of this prompt; it takes none"),
        ("judge_system", "{fence}", "{fence} is no placeholder of this prompt; it takes none"),
        ("judge_transcript", "{transcript}", "the placeholder {fence} is missing; write it"),
        ("judge_transcript", "{fence}", "the placeholder {transcript} is missing; write it"),
        ("judge_transcript", "{fence}{transcript}{Name}", "{Name} is no placeholder of this prompt; use {fence}"),
        ("judge_question", "{options}", "the placeholder {question} is missing; write it"),
        ("judge_question_short", "{question}{options}", "{options} is no placeholder of this prompt; use {guidance}"),
        ("judge_question_short", "{options_line}", "the placeholder {question} is missing; write it"),
        ("judge_question", "{question}{options}{hint}", "{hint} is no placeholder of this prompt; use {guidance}"),
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


def test_paragraphs_are_what_blank_lines_divide() -> None:
    parts = Template("\n{a}\nb\n\n \nc\n").paragraphs
    assert [part.text for part in parts] == ["{a}\nb", "c"]
    assert parts[0].placeholders == {"a"}


@pytest.mark.parametrize("text", ["Notes: ill", "Notes: ill\n\nI am ill.\n\nNotes: sad"])
def test_an_example_without_its_message_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"^simulator_examples\.txt: the last notes have no message; write it"):
        load(simulator_examples=text)
