"""The page of a run that was made of nothing: its numbers, its words, its structure."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tomllib
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.report.html.made import DIMENSIONS, JUDGE, held, record
from tests.report.html.parsed import Parsed, at, leaves
from vera_local.bundle import DimensionRating
from vera_local.report.html.page import Choice, page
from vera_local.report.html.render import report_html
from vera_local.report.reading import Opinion
from vera_local.report.record import Held, JudgeRecord

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script><!-- <img src=x onerror=alert(3)>",
    "**bold** _it_ [x](javascript:alert(4)) `code`\n\n- list",
    "\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "\U0001f469\u200d\U0001f4bb \U0001f1fa\U0001f1f3 emoji",
    "x" * 20_000,
    "a\x00b\x1bc\u2028d",
    "{{ 7 * 7 }} {% raw %} &amp; &#60;b&#62; \"quoted\" 'too'",
]


def html(conversations: int = 12, choice: Choice | None = None, **each: object) -> str:
    many = [held(n, ["hello", "there"], **each) for n in range(1, conversations + 1)]  # type: ignore[arg-type]
    return report_html(page(record(many), choice or Choice()))


@pytest.fixture(scope="module")
def hostile() -> str:
    many = [held(n, [text, text], rationale=text) for n, text in enumerate(HOSTILE, 3)]
    return report_html(page(record(many), Choice()))


def test_every_number_is_that_of_the_scores_and_every_one_is_there() -> None:
    its = record([held(n, ["hello", "there"]) for n in range(1, 13)])
    shown = Parsed.of(report_html(page(its, Choice()))).numbers
    scores = {"judges": {judge: scores.model_dump(mode="json") for judge, scores in its.scores.items()}}
    for number in shown:
        value = at(scores, number.pointer)
        assert number.value == str(value)
        text = number.text.replace("\u00a0%", "")
        assert text == (f"{value:.1f}" if isinstance(value, float) else str(value)), number
    known = {pointer for pointer in leaves(scores) if not UNSHOWN.search(pointer)}
    assert known - {number.pointer for number in shown} == set()
    assert len(known) > 200


UNSHOWN = re.compile(
    r"/scale/|/personas_in_total$|/personas_relevant$|/total$|/decisions/\d+/personas$"
    r"|/(overall|dimensions/[^/]+)/conversations$"
)
"""What follows from other numbers of a tally."""


def test_there_is_no_number_among_the_ratings_that_is_not_held_to_the_scores() -> None:
    many = [held(n, ["a", "b"], judge="judge") for n in range(1, 13)]
    its = Parsed.of(report_html(page(record(many, judge="judge"), Choice())))
    for section in ("summary", "ratings"):
        words = its.plain[section].replace("95 %", "").replace("0 is worst, 100 best", "")
        words = re.sub(r"95 % intervals: .*?fewer than 10 personas\.", "", words)
        words = re.sub(r"\(2000 draws, seed 0\)|fewer than 10 personas|<\d>|-100", "", words)
        assert re.findall(r"\d[^.]{0,20}", words) == [], section


def test_no_harm_found_is_only_said_where_it_could_have_been() -> None:
    def glance(*ratings: str | None) -> str:
        many = [replace(h, opinions=(_rated(h, r),)) for r, h in zip(ratings, _four(), strict=False)]
        its = Parsed.of(report_html(page(record(many), Choice())))
        (headline,) = [n for n in its.all("div") if n.attributes.get("class", "").startswith("headline")]
        return f"{headline.attributes['class']}: {' '.join(its.by_id('summary').text.split())}"

    assert glance("good", "fair").startswith("headline clear: ")
    assert "4 of 4" not in glance("good", "bad")
    assert glance("good", "bad").startswith("headline: ")
    nothing = glance("n/a", "n/a")
    assert nothing.startswith("headline: ") and "No conversation has a relevant rating" in nothing
    assert "No rating is relevant." in nothing and "was rated bad" not in nothing
    missing = glance("good", None, None)
    assert missing.startswith("headline: ")
    assert "4 ratings are Unrated: answers were missing, and any of these could be bad." in missing


def _four() -> list[Held]:
    return [held(n, ["a", "b"]) for n in range(1, 5)]


def _rated(h: Held, rating: str | None) -> Opinion:
    return replace(h.opinions[0], ratings=tuple(DimensionRating(d, rating, ()) for d in DIMENSIONS))


def test_of_each_judge_is_told_what_it_has_not_rated_yet() -> None:
    many = _four()
    half = [replace(h, opinions=(*h.opinions, replace(_rated(h, "good"), judge="late"))) for h in many[:1]]
    its = record([*half, *many[1:]])
    its = replace(its, judges=(*its.judges, JudgeRecord("late", "m", ""), JudgeRecord("j", "", "", (JUDGE, "late"))))
    notes = [" ".join(n.text.split()) for n in Parsed.of(report_html(page(its, Choice()))).all("p")]
    assert [n for n in notes if n.startswith("Unfinished.")] == [
        "Unfinished. 3 of 4 conversations that are fit to judge have not been rated by late yet."
    ]


def test_the_words_of_a_bar_have_its_numbers() -> None:
    its = record([held(n, ["a", "b"]) for n in range(1, 13)])
    bars = [n for n in Parsed.of(report_html(page(its, Choice()))).all("svg") if "bar" in n.attributes.get("class", "")]
    tally = its.scores[JUDGE].dimensions["Warmth"]
    told = f"bad {tally.counts['bad']} ({tally.percentages['bad']:.1f} %)"
    assert bars[0].attributes["aria-label"].startswith(f"Warmth: {told}")
    assert bars[0].attributes["aria-label"].endswith(f"of {tally.relevant}.")


def test_hostile_text_is_text(hostile: str) -> None:
    its = Parsed.of(hostile)
    scripts = its.all("script")
    assert [s.attributes.get("type") for s in scripts if not s.attributes.get("id")] == [None]
    assert {s.attributes.get("type") for s in scripts if s.attributes.get("id")} == {"application/json"}
    assert its.all("img") == []
    assert not any(name.startswith("on") for node in its.nodes for name in node.attributes)
    for text, data in zip(HOSTILE, its.conversations, strict=True):
        shown = text.replace("\x00", "\u2400").replace("\x1b", "\u241b")
        assert data["turns"] == [["u", shown], ["c", shown]]
        assert {step["why"] for step in data["judges"][0]["path"]} == {shown}


def test_an_excerpt_of_hostile_text_is_text() -> None:
    for n, text in enumerate(HOSTILE):
        its = Parsed.of(report_html(page(record([held(3, [text, text])]), Choice())))
        said = [node.text for node in its.all("p") if node.attributes.get("class") == "said"]
        assert said and all(
            s.removesuffix(" …") in text.replace("\x00", "\u2400").replace("\x1b", "\u241b") for s in said
        ), n
        assert all(node.attributes["dir"] == "auto" for node in its.all("p") if node.attributes.get("class") == "said")


ODD = "<b>&\x00\x1b\ud800\u009b\"'"


@pytest.mark.parametrize("redact", [False, True])
def test_names_are_as_hostile_as_messages(redact: bool) -> None:
    judge = ODD.replace("\ud800", "")
    its = record([held(n, ["a", "b"], judge=judge, rationale=ODD) for n in (3, 4)], judge=judge)
    instrument = replace(its.instrument, title=ODD, version=ODD, notice=ODD)
    its = replace(its, name=ODD, chatbot=ODD, players=(ODD,), instrument=instrument, warnings=(ODD,), commands=(ODD,))
    text = report_html(page(its, Choice(redact=redact)))
    text.encode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    shown = Parsed.of(text)
    assert shown.all("b") == []
    assert [n.text for n in shown.all("h1")] == ["<b>&\u2400\u241b\\ud800\\u009b\"'"]


def test_the_page_loads_nothing_and_runs_only_its_own_script(hostile: str) -> None:
    its = Parsed.of(hostile)
    (policy,) = [m.attributes["content"] for m in its.all("meta") if "http-equiv" in m.attributes]
    (style,), (script,) = its.all("style"), [s for s in its.all("script") if not s.attributes.get("id")]
    for text in (style.text, script.text):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert not any(node.attributes.get("style") for node in its.nodes), "the policy forbids them"
    for node in its.nodes:
        for name in ("src", "href", "data", "action", "poster", "srcset"):
            assert node.attributes.get(name, "#").startswith("#"), (node.tag, name)
    assert set(re.findall(r"url\(([^)]*)\)|@import", style.text)) <= {"#p-mid1", "#p-mid2", "#p-mid3"}


@pytest.mark.parametrize("choice", [Choice(), Choice(redact=True), Choice(excerpts=0)])
def test_a_screen_reader_finds_its_way(choice: Choice) -> None:
    its = Parsed.of(html(choice=choice))
    ids = [node.attributes["id"] for node in its.nodes if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    levels = [int(node.tag[1]) for node in its.nodes if re.fullmatch(r"h[1-6]", node.tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    for node in its.nodes:
        for name in ("aria-labelledby", "for"):
            assert node.attributes.get(name, ids[0]) in ids
        if node.tag == "a":
            assert node.attributes["href"].removeprefix("#") in ids
        if node.tag == "svg" and "role" not in node.attributes:
            assert node.attributes["aria-hidden"] == "true"
        if node.attributes.get("role") == "img":
            assert node.attributes["aria-label"]
        if node.tag in ("select", "input"):
            assert any(parent.tag == "label" for parent in node.parents)
    tables = its.all("table")
    captions = [node.parents[-1] for node in its.all("caption")]
    assert [id(t) for t in tables] == [id(t) for t in captions]
    assert all(node.attributes.get("scope") in ("row", "col") for node in its.all("th"))
    assert {node.tag for node in its.nodes} >= {"main", "nav", "header", "footer"}


def test_redacted_nothing_that_was_said_is_left() -> None:
    many = [held(n, [f"secret-user-{n}", f"secret-bot-{n}"], rationale=f"secret-why-{n}") for n in range(1, 13)]
    whole, redacted = (report_html(page(record(many), choice)) for choice in (Choice(), Choice(redact=True)))
    assert "secret-user-1" in whole and "secret-why-1" in whole
    assert "This file holds whole transcripts" in whole
    assert "secret" not in redacted
    its = Parsed.of(redacted)
    assert [s.attributes.get("id") for s in its.all("script")] == [None]
    assert its.all("dialog") == []
    assert len(its.numbers) == len(Parsed.of(whole).numbers), "every number stays"
    assert "it holds no transcript" in redacted


def test_a_redacted_page_keeps_no_prompt_of_the_chatbot() -> None:
    its = record([held(1, ["a", "b"])])
    identity = {**its.manifest["identity"], "chatbot": {"model": "bot", "system_prompt": "secret prompt"}}
    its = type(its)(**{**vars(its), "manifest": {**its.manifest, "identity": identity}})
    assert "secret prompt" in report_html(page(its, Choice()))
    redacted = report_html(page(its, Choice(redact=True)))
    assert "secret prompt" not in redacted
    assert hashlib.sha256(b"secret prompt").hexdigest() in redacted


def test_a_redacted_page_keeps_no_words_that_a_service_or_a_server_is_sent() -> None:
    settings: dict[str, object] = {"request": {"system": "secret prompt", "text": "{message}"}}
    settings |= {"extra": {"prefix": "secret words"}, "command": ["bot", "--prompt", "secret orders"]}
    its = record([held(1, ["a", "b"])])
    identity = {**its.manifest["identity"], "chatbot": {"model": "bot", "settings": settings}}
    config = 'seed = 3\n\n[chatbot]\nurl = "http://bot"\nrequest = {system = "secret prompt"}\n'
    its = replace(its, manifest={**its.manifest, "identity": identity}, config=config)
    assert report_html(page(its, Choice())).count("secret") == 4
    redacted = report_html(page(its, Choice(redact=True)))
    assert "secret" not in redacted
    (toml,) = [n.text for n in Parsed.of(redacted).all("pre") if n.attributes["aria-label"] == "run.toml"]
    told = tomllib.loads(toml)
    assert (told["seed"], told["chatbot"]["url"]) == (3, "http://bot")
    assert told["chatbot"]["request"].startswith("left out: 27 characters, sha256 ")


@pytest.mark.parametrize(("excerpts", "figures"), [(0, 0), (1, 4), (3, 12)])
def test_as_many_excerpts_as_wanted(excerpts: int, figures: int) -> None:
    its = Parsed.of(html(choice=Choice(excerpts=excerpts)))
    assert len(its.all("figure")) == figures, "of four questions, each of which decided four conversations"
    marked = [n for n in its.all("div") if n.attributes.get("class") == "turn bot evidence"]
    assert len(marked) == figures, "the second turn is named"
    assert len(its.conversations) == 12


def test_the_conversations_are_rows_without_a_script() -> None:
    its = Parsed.of(html())
    rows = [n for n in its.all("tr") if n.inside("table") and "data-words" in n.attributes]
    assert [row.attributes["id"] for row in rows] == [f"c{n}" for n in range(1, 13)]
    cells = [n.attributes["data-rating"] for n in its.all("td") if "data-rating" in n.attributes and n.inside("c3")]
    assert cells == ["bad", "bad"]
    links = [n for n in its.all("a") if n.attributes.get("data-open") == "c3" and n.inside("c3")]
    assert [link.text for link in links] == ["id-3"]


def test_two_hundred_long_conversations_make_a_file_of_less_than_15_mb() -> None:
    text, why = "All work and no play. " * 30, "It says so in turn 2. " * 12
    many = [held(n, [text] * 30, questions=15, rationale=why) for n in range(1, 201)]
    size = len(report_html(page(record(many, questions=15), Choice())).encode())
    assert 6_000_000 < size < 15_000_000


def test_a_conversation_that_names_turns_that_are_not_there_shows_those_that_are() -> None:
    its = Parsed.of(report_html(page(record([held(3, ["a", "b"], evidence=(2, 9))]), Choice())))
    assert [n.text for n in its.all("p") if n.attributes.get("class") == "said"][:2] == ["a", "b"]


def test_the_data_of_a_conversation_has_what_the_judge_said() -> None:
    (data,) = Parsed.of(report_html(page(record([held(3, ["a", "b"])]), Choice()))).conversations
    (judge,) = data["judges"]
    assert judge["ratings"] == [["Warmth", "bad", ["W1", "W2"]], ["Care", "bad", ["C1", "C2"]]]
    step = {"q": "W1", "a": "Yes", "state": "answered", "mode": "direct", "turns": [2], "why": "because"}
    assert judge["path"][0] == step | {"p": 0.9, "mass": 0.95}
    rubric = Parsed.of(html(1)).data("rubric")
    assert rubric["questions"]["W1"] == {"text": "Does it fail in Warmth <1>?", "dimension": "Warmth"}
    assert rubric["tones"] == {"good": "best", "fair": "mid2", "bad": "worst", "n/a": "apart"}
    assert json.dumps(data)
