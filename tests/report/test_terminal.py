from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.report import by_group, matrix, summary_lines
from vera_local.score import Rating, Scale, Scores, Tally, ratings_frame, score

NOT_RELEVANT = "Not Relevant"
SCALE = Scale(
    ("Best Practice", "Suboptimal but Low Potential for Harm", "High Potential for Harm"),
    NOT_RELEVANT,
    ("Detects Potential Risk", "Confirms Risk", "Supportive Conversation", "[b]Odd[/b] Name"),
    ("None", "Low", "High", "Immediate"),
)


def scores(conversations: int = 190, scale: Scale = SCALE) -> Scores:
    """Every dimension is rated differently; Confirms Risk is Unrated throughout; no conversation is Immediate."""
    rows = [
        Rating(f"c{number}", f"P{number}", scale.groups[number % 3], 1, "j", name, rating(number, place, scale))
        for number in range(conversations)
        for place, name in enumerate(scale.dimensions)
    ]
    return score(ratings_frame(rows), scale)


def rating(number: int, place: int, scale: Scale) -> str | None:
    words = (*scale.ratings, scale.not_relevant, None)
    return None if place == 1 else words[number * (place + 3) % (11 + place) % len(words)]


def text(renderable: RenderableType, width: int) -> str:
    console = Console(width=width, file=io.StringIO())
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def lines_of(printed: str, words: set[str]) -> int:
    return sum(words <= set(line.split()) for line in printed.splitlines())


def numbers(tally: Tally, percentages: bool) -> set[str]:
    counts = {str(count) for count in (*tally.counts.values(), tally.relevant, tally.not_relevant, tally.unrated)}
    shares = {f"{share:.2f}%" for share in tally.percentages.values() if share is not None} if percentages else set()
    return counts | shares | ({"no", "data"} if tally.vera_score is None else {f"{tally.vera_score:.2f}"})


@pytest.mark.parametrize("width", [100, 80])
@pytest.mark.parametrize("show", [matrix, by_group])
def test_nothing_is_cut_off(show: Callable[[Scores], RenderableType], width: int) -> None:
    printed = text(show(scores()), width)
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= width
    words = set(printed.split())
    for name in (*SCALE.dimensions, *SCALE.ratings, NOT_RELEVANT, "Unrated", "VERA score"):
        assert set(name.split()) <= words, name


@pytest.mark.parametrize("show", [matrix, by_group])
def test_of_a_word_longer_than_its_column_no_letter_is_lost(show: Callable[[Scores], RenderableType]) -> None:
    scale = replace(SCALE, dimensions=("x" * 70,), groups=SCALE.groups[:3])
    groups_shown = 1 if show is matrix else 3
    assert text(show(scores(scale=scale)), 80).count("x") == 70 * groups_shown


@pytest.mark.parametrize("width", [100, 80])
def test_the_matrix_holds_every_number(width: int) -> None:
    ours = scores()
    words = set(text(matrix(ours), width).split())
    for tally in (*ours.dimensions.values(), ours.overall):
        assert numbers(tally, percentages=True) <= words


def test_at_100_columns_each_row_of_the_matrix_is_one_line() -> None:
    ours = scores()
    printed = text(matrix(ours), 100)
    for name, tally in (*ours.dimensions.items(), ("Overall", ours.overall)):
        assert lines_of(printed, set(name.split()) | numbers(tally, percentages=True)) == 1, name


def test_overall_comes_last() -> None:
    printed = text(matrix(scores()), 80)
    assert printed.index("Overall") > max(printed.index(name.split()[0]) for name in SCALE.dimensions)


def test_at_80_columns_the_groups_hold_every_count() -> None:
    ours = scores()
    printed = text(by_group(ours), 80)
    for name, profile in ours.groups.items():
        assert lines_of(printed, {name} | numbers(profile.overall, percentages=False)) == 1
        for tally in profile.dimensions.values():
            assert lines_of(printed, numbers(tally, percentages=False)) >= 1


def test_a_group_without_conversations_is_one_row_without_data() -> None:
    printed = text(by_group(scores()), 100)
    row = printed.splitlines()[-2].split()
    assert row == ["Immediate", *"000000", "no", "data"]


@pytest.mark.parametrize("show", [matrix, by_group])
def test_no_ratings_at_all_read_as_no_data(show: Callable[[Scores], RenderableType]) -> None:
    printed = text(show(score(ratings_frame([]), SCALE)), 80)
    assert "no data" in printed
    assert "0.00" not in printed


def test_without_colour_the_output_is_plain() -> None:
    assert "\x1b" not in text(matrix(scores()), 80)


def test_a_scale_without_vera_score_has_no_such_column() -> None:
    binary = replace(SCALE, ratings=("Met", "Not met"))
    printed = text(matrix(scores(scale=binary)), 80)
    assert "VERA" not in printed
    assert "Met" in printed


@pytest.mark.parametrize("show", [matrix, by_group])
def test_a_scale_without_not_relevant_has_no_such_column(show: Callable[[Scores], RenderableType]) -> None:
    binary = replace(SCALE, ratings=("Safe", "Unsafe"), not_relevant=None)
    ours = scores(scale=binary)
    printed = text(show(ours), 80)
    assert "Relevant" not in printed
    assert "None of" not in printed, "the legend must not speak of a rating called None"
    tally = ours.dimensions["Confirms Risk"]
    assert (tally.unrated, tally.not_relevant, tally.relevant) == (190, 0, 0)


def test_at_100_columns_a_binary_row_holds_its_numbers() -> None:
    ours = scores(scale=replace(SCALE, ratings=("Safe", "Unsafe"), not_relevant=None))
    printed = text(matrix(ours), 100)
    for name, tally in (*ours.dimensions.items(), ("Overall", ours.overall)):
        shown = [
            f"{tally.counts[r]} {'no data' if (p := tally.percentages[r]) is None else f'{p:.2f}%'}"
            for r in tally.counts
        ]
        (row,) = [line for line in printed.splitlines() if line.startswith(name)]
        assert row.removeprefix(name).split() == " ".join([*shown, str(tally.relevant), str(tally.unrated)]).split()


def test_the_summary_counts_endings_and_ratings() -> None:
    said = (Message(Speaker.PERSONA, "hi"), Message(Speaker.CHATBOT, "hello"))
    endings = [Ending.TURNS, Ending.TURNS, *Ending, None]
    conversations = [Conversation(f"c{i}", "P", 1, said, ending) for i, ending in enumerate(endings)]
    rows = [
        Rating("c0", "P", "Low", 1, "j", "Confirms Risk", "High Potential for Harm"),
        Rating("c1", "P", "Low", 1, "j", "Confirms Risk", None),
    ]
    assert summary_lines(conversations, {"tiny": score(ratings_frame(rows), SCALE)}) == [
        "Conversations: 11, reached the set turns: 3, ended by the persona: 1, reached the set words: 1, "
        "recorded elsewhere: 1, "
        "too long for a model's context: 1, no usable persona message: 1, chatbot failed: 1, engine failed: 1, "
        "not finished: 1",
        "Conversations fit to judge: 6",
        "Judge tiny: conversations judged: 2, with any High Potential for Harm: 1, Unrated: 1 of 2 ratings",
    ]
    assert summary_lines([], {}) == ["Conversations: 0", "Conversations fit to judge: 0"]
