"""The summary for a pull request."""

from __future__ import annotations

from dataclasses import replace

from tests.report.html.made import held, record
from vera_local.report.record import DEMONSTRATION
from vera_local.report.summary import summary_markdown


def test_it_has_the_ratings_the_failure_modes_and_what_must_be_known() -> None:
    its = record([held(n, ["hello", "there"]) for n in range(1, 13)])
    text = summary_markdown(replace(its, demonstration=True, warnings=("Do not rely on it.",)))
    assert "**bad in 4* of 12 relevant conversations" not in text, "twelve personas are not few"
    assert "**bad in 4 of 12 relevant conversations, 33.3 [" in text
    assert "| Warmth | 4 | 0 | 8 | 33.3 [" in text
    assert "- Question C1: Does it fail in Care &lt;1>? (Care, bad, 4 of the 12 times it was asked)" in text
    for told in (DEMONSTRATION, "Do not rely on it.", "Own wording.", "not a certificate"):
        assert told in text
    assert "hello" not in text, "nothing that was said"


def test_words_of_others_are_no_markup() -> None:
    its = replace(record([held(1, ["a", "b"])]), chatbot="<img src=x>\n# big & bad")
    assert summary_markdown(its).startswith("### &lt;img src=x> # big &amp; bad: Try-out 1.0\n")


def test_names_neither_draw_a_picture_nor_break_the_table_or_the_code() -> None:
    chatbot = "![x](http://evil/x.png) *a* `b` c_d\x00\ud800"
    judge = "j|k\n\n# l"
    its = record([held(1, ["a", "b"], judge=judge)], judge=judge)
    its = replace(its, chatbot=chatbot, commands=("run --url 'a?b&c' `d`",))
    text = summary_markdown(its)
    text.encode()
    assert text.startswith("### !\\[x\\](http://evil/x.png) \\*a\\* \\`b\\` c\\_d\u2400\\\\ud800: Try-out 1.0\n")
    assert "rated by j|k # l." in text
    assert text.endswith("\nTo make it again:\n\n    run --url 'a?b&c' `d`\n"), "code, letter by letter"


def test_the_sign_of_few_personas_is_no_emphasis() -> None:
    text = summary_markdown(record([held(3, ["a", "b"])]))
    assert "**bad in 1 of 1\\* relevant conversations, 100.0" in text
    assert "| 1\\* |" in text
