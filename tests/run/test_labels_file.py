"""Tables of ratings in each layout, and what is wrong with them in one sentence."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from vera_local.errors import UserError
from vera_local.report.files import write_frame
from vera_local.run.labels_file import DIMENSION, Cleaning, Layout, Table, read_labels

WIDE = Layout(("id",), ("x", "y"), "who")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "labels.csv"


def read(file: Path, text: str, layout: Layout = WIDE, cleaning: Cleaning | None = None) -> Table:
    file.write_text(text, encoding="utf-8")
    return read_labels(file, layout, cleaning or Cleaning())


def plain(table: Table) -> list[tuple[str, str, str, str]]:
    return [row[:4] for row in table.rows]


def test_a_column_per_dimension(table: Path) -> None:
    found = read(table, "who,id,x,y,z\na,1,Yes,No,?\nb,1,No,,?\n")
    assert plain(found) == [("1", "x", "a", "Yes"), ("1", "y", "a", "No"), ("1", "x", "b", "No")]
    assert found.rows[2].place == f"{table}, line 3"
    assert found.notes == (f"{table}: 1 of 4 ratings are missing.",)
    assert (found.clusters, found.chatbots) == ({"1": "1"}, None)


def test_a_rating_per_row(table: Path) -> None:
    layout = Layout(("id",), ("rating",), "who", "dimension")
    found = read(table, "id,who,dimension,rating\n1,a,x,Yes\n1,b,x,No\n1,b,y,No\n", layout)
    assert plain(found) == [("1", "x", "a", "Yes"), ("1", "x", "b", "No"), ("1", "y", "b", "No")]


def test_a_column_per_rater(table: Path) -> None:
    found = read(table, "id,a,b\n1,Yes,No\n2,No,No\n", Layout(("id",), ("a", "b")))
    assert plain(found)[:2] == [("1", DIMENSION, "a", "Yes"), ("1", DIMENSION, "b", "No")]


def test_items_of_several_columns_and_what_is_said_of_them(table: Path) -> None:
    layout = Layout(("vignette", "model"), ("x",), "who", chatbot="model", cluster=("vignette",))
    found = read(table, "who,vignette,model,x\na,7,gpt,1\nb,7,gpt,0\na,7,llama,1\n", layout)
    assert found.chatbots == {"7 / gpt": "gpt", "7 / llama": "llama"}
    assert found.clusters == {"7 / gpt": "7", "7 / llama": "7"}


def test_a_table_of_our_own_is_read_without_its_marks(table: Path) -> None:
    rows = [("=1+1", "@ann", "-1", "'-2"), ("+b", "don't", "Yes", "'quoted'")]
    frame = pl.DataFrame(rows, schema=["id", "who", "x", "y"], orient="row")
    write_frame(frame, table, None)
    assert "'=1+1" in table.read_text(encoding="utf-8")
    assert plain(read_labels(table, WIDE, Cleaning())) == [
        (id, dimension, who, rating) for id, who, *given in rows for dimension, rating in zip("xy", given, strict=True)
    ]


def test_a_leading_mark_is_off_wherever_the_item_is_named(table: Path) -> None:
    """Some rows of one item have it: what is drawn together, and what is left out, are named without it."""
    layout = Layout(("id",), ("x",), "who", cluster=("id",))
    cleaning = Cleaning(without=({"id": "2"},))
    found = read(table, "id,who,x\n#1,a,Yes\n1,b,No\n#2,b,No\n,,\n", layout, cleaning)
    assert plain(found) == [("1", "x", "a", "Yes"), ("1", "x", "b", "No")]
    assert found.clusters == {"1": "1", "2": "2"}
    assert found.notes == (f"{table}: a leading # was taken off the names of 2 items.",)


def test_cleaning(table: Path) -> None:
    text = "﻿who,id,x,y\r\na, #1 ,Safe,n/a\r\nb,1,Unsafe,Safe\r\n\r\nb,2,Safe,Safe\r\n"
    cleaning = Cleaning(frozenset({"n/a"}), {"x": "X"}, {"Safe": "0"}, ({"id": "2", "dimension": "y"},))
    found = read(table, text, cleaning=cleaning)
    assert plain(found) == [("1", "X", "a", "0"), ("1", "X", "b", "Unsafe"), ("1", "y", "b", "0"), ("2", "X", "b", "0")]
    assert found.dimensions == ("X", "y")
    assert found.notes == (
        f"{table}: a leading # was taken off the names of 1 items.",
        f"{table}: 1 of 5 ratings are missing.",
    )


@pytest.mark.parametrize(
    ("text", "layout", "told"),
    [
        ("id,whom,x,y\n", WIDE, "line 1: unknown column 'who' (did you mean 'whom'?); known: 'id', 'whom', 'x', 'y'"),
        ("", WIDE, "line 1: unknown column 'id'; known: none"),
        ("id,who,x,y\n1,a,Yes\n", WIDE, "line 2: 3 cells where the header has 4; correct the row."),
        ('id,who,x,y\n1,a,"Yes"s,No\n', WIDE, "line 2: this is no CSV"),
        ("id;who;x;y\n1;a;Yes;No\n", WIDE, "line 1: the columns are parted by ';'; save the table with commas"),
        ("id\twho\tx\ty\n1\ta\tYes\tNo\n", WIDE, "line 1: the columns are parted by tabs"),
        ("id,who,x,y,x\n1,a,Yes,No,No\n", WIDE, "line 1: there are 2 columns 'x'; keep or name one of them."),
        ("id,who,x,y\n1,,Yes,No\n", WIDE, "line 2: column 'who' names no rater"),
        ("id,who,x,y\n#,a,Yes,No\n", WIDE, "line 2: the item has no name in 'id'"),
        ("id,x\n1,Yes\n", Layout((), ("x",)), "--item and --ratings"),
        ("id,x\n1,Yes\n", Layout(("id",), ("x",), None, "id"), "--dimension is for one rating per row"),
        (
            "id,who,x,y\n1,a,,\n1,b,,\n2,a,,\n",
            Layout(("id",), ("x",), "who", chatbot="y", cluster=("who",)),
            "line 3: '1' has 'b' here and 'a' in",
        ),
    ],
)
def test_wrong_tables(table: Path, text: str, layout: Layout, told: str) -> None:
    with pytest.raises(UserError) as error:
        read(table, text, layout)
    assert str(error.value).startswith(str(table))
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("cleaning", "told"),
    [
        (Cleaning(dimensions={"X": "x"}), "--map: unknown dimension 'X' (did you mean 'x'?); known: 'x', 'y'"),
        (Cleaning(words={"yes": "1"}), "--map-rating: unknown rating 'yes' (did you mean 'Yes'?)"),
        (Cleaning(without=({"model": "a"},)), "--without: unknown column 'model'; known: 'who', 'id'"),
    ],
)
def test_wrong_cleaning(table: Path, cleaning: Cleaning, told: str) -> None:
    with pytest.raises(UserError) as error:
        read(table, "who,id,x,y\na,1,Yes,No\n", cleaning=cleaning)
    assert told in str(error.value)


def test_a_file_that_is_not_there(table: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        read_labels(table, WIDE, Cleaning())
