"""The persona table: what is read from it, what is refused, and who is chosen."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.bundle.personas import Persona, choose, load_personas
from vera_local.bundle.schema import PersonaSpec
from vera_local.errors import UserError

SPEC = PersonaSpec(file="p.tsv", name="Name", group="Level", groups=["None", "Low", "High"], columns=["Name", "Level"])
HEADER = "Name\tLevel\tAge\n"


def load(folder: Path, content: str | bytes) -> tuple[Persona, ...]:
    file = folder / "p.tsv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return load_personas(file, SPEC)


def test_every_column_is_kept_as_text(tmp_path: Path) -> None:
    ann, bob = load(tmp_path, HEADER + 'Ann\tNone\t030\nBob\tLow\t"a" said he\n')
    assert ann == Persona("Ann", "None", {"Name": "Ann", "Level": "None", "Age": "030"})
    assert bob.fields["Age"] == '"a" said he'


@pytest.mark.parametrize("key", ["opening", "language", "seed"])
def test_a_column_that_is_counted_on_and_not_there_is_named(tmp_path: Path, key: str) -> None:
    (tmp_path / "p.tsv").write_text(HEADER + "Ann\tNone\t30\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"line 1: there is no column 'Message'; add it to the header"):
        load_personas(tmp_path / "p.tsv", SPEC.model_copy(update={key: "Message"}))


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n", "\n\n"])
def test_byte_order_mark_and_line_ends_do_not_matter(tmp_path: Path, mark: bytes, end: str, last: str) -> None:
    text = (HEADER + "Ann\tNone\t30\nZoé\tLow\t" + last).replace("\n", end)
    assert [p.fields for p in load(tmp_path, mark + text.encode())] == [
        {"Name": "Ann", "Level": "None", "Age": "30"},
        {"Name": "Zoé", "Level": "Low", "Age": ""},
    ]


@pytest.mark.parametrize(
    ("content", "place", "remedy"),
    [
        (b"", " is empty", "write a header line"),
        (HEADER.encode(), " holds no persona", "write one line per persona"),
        (b"Name\tAge\nAnn\t3\n", ", line 1: there is no column 'Level'", "add it to the header"),
        (b"Age,Level\n3,None\n", ", line 1: there is no column 'Name', 'Level'", "add it to the header"),
        (b"Name\tLevel\tName\n", ", line 1: the column 'Name' occurs twice", "remove or rename one"),
        (b"Name\tLevel\nAnn\tLow\nBob\n", ", line 3: it has 1 fields and the header 2", "set the tabs right"),
        (b"Name\tLevel\n\nAnn\tLow\tx\n", ", line 3: it has 3 fields and the header 2", "set the tabs right"),
        (b"Name\tLevel\nAnn\tLow\nAnn\tHigh\n", ", line 3: the name 'Ann' is already on line 2", "give each"),
        (b"Name\tLevel\n\tLow\n", ", line 2: the name in column 'Name' is empty", "write a plain name"),
        ("Name\tLevel\nA\u202enn\tLow\n".encode(), ", line 2: the name in column 'Name'", "write a plain name"),
        (b"Name\tLevel\nAnn \tLow\n", ", line 2: the name in column 'Name'", "write a plain name"),
        (b"Name\tLevel\nAnn\tlow\n", ", line 2: 'low' in column 'Level'", "use one of 'None', 'Low', 'High'"),
        (b"Name\tLevel\nAnn\t\n", ", line 2: '' in column 'Level'", "use one of 'None', 'Low', 'High'"),
        (b"Name\tLevel\nAnn\tLow\nZo\xe9\tLow\n", ", line 3: not UTF-8 text", "save the file as UTF-8"),
        (b"Name\tLevel\nAnn" + b"x" * 200_000 + b"\tLow\n", ", line 2: no table line", "correct it"),
    ],
)
def test_each_mistake_is_one_sentence_with_place_and_remedy(
    tmp_path: Path, content: bytes, place: str, remedy: str
) -> None:
    with pytest.raises(UserError) as error:
        load(tmp_path, content)
    assert str(error.value).startswith(f"{tmp_path / 'p.tsv'}{place}")
    assert remedy in str(error.value)


def person(name: str, group: str) -> Persona:
    return Persona(name, group, {})


CROWD = [person(*words.split()) for words in ("A1 A", "B1 B", "A2 A", "A3 A", "C1 C", "B2 B")]


def names(personas: tuple[Persona, ...]) -> list[str]:
    return [p.name for p in personas]


def test_a_number_takes_the_first_of_each_group_then_the_second() -> None:
    assert names(choose(CROWD, 6)) == ["A1", "B1", "C1", "A2", "B2", "A3"]
    assert names(choose(CROWD, 2)) == ["A1", "B1"]
    assert names(choose(CROWD, 4, ["C", "B", "A"])) == ["C1", "B1", "A1", "B2"]


@given(
    st.lists(st.sampled_from("ABC"), min_size=1, max_size=12).flatmap(
        lambda groups: st.tuples(st.just(groups), st.integers(1, len(groups)))
    )
)
def test_a_number_is_spread_evenly(drawn: tuple[list[str], int]) -> None:
    groups, wanted = drawn
    crowd = [person(f"P{i}", group) for i, group in enumerate(groups)]
    chosen = choose(crowd, wanted)
    assert len({p.name for p in chosen}) == wanted
    counts = {g: sum(p.group == g for p in chosen) for g in set(groups)}
    for group, count in counts.items():
        mine = [p for p in crowd if p.group == group]
        assert [p for p in chosen if p.group == group] == mine[:count]
        assert count == len(mine) or count >= max(counts.values()) - 1


@pytest.mark.parametrize("wanted", [0, -1, 7])
def test_a_number_that_is_not_there_is_refused(wanted: int) -> None:
    with pytest.raises(UserError, match=f"^{wanted} personas are wanted; choose a number from 1 to 6"):
        choose(CROWD, wanted)


def test_names_are_taken_in_the_order_named() -> None:
    assert names(choose(CROWD, ["C1", "A2"])) == ["C1", "A2"]


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        (["A1", "b2"], "no persona 'b2'; did you mean 'B2'"),
        (["A1", "A1"], "'A1' is named twice; name each one once"),
        (["xyz"], "no persona 'xyz'; did you mean"),
        ([], "no persona is named; give at least one"),
    ],
)
def test_names_that_are_refused(wanted: list[str], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        choose(CROWD, wanted)
    assert sentence in str(error.value)
