"""The list of conversations: filtered, sorted, searched and turned over by the server."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.made_run import made_run
from tests.view.asking import asking
from tests.view.reading import rows, status
from vera_local.report.reading import UNRATED
from vera_local.run.store import Store
from vera_local.view.asked import Asked
from vera_local.view.listing import PER_PAGE

LIST = "runs/first/conversations"


@pytest.mark.parametrize(
    ("query", "keep"),
    [
        ("persona=MIR", lambda row: "mir" in row[1].lower()),
        ("persona=talk-7", lambda row: row[0].startswith("talk-7")),
        ("group=High", lambda row: row[2] == "High"),
        ("ending=ended+by+the+persona", lambda row: row[8] == "ended by the persona"),
        ("rating=Suboptimal", lambda row: "Suboptimal" in row[3:8]),
        ("rating=Suboptimal&dimension=Confirms+Risk", lambda row: row[4] == "Suboptimal"),
        (f"rating={UNRATED}", lambda row: UNRATED in row[3:8]),
        ("uncertain=1", lambda row: row[10] != "0" or row[11] != "0"),
        ("shortest=7", lambda row: int(row[9]) >= 7),
        ("longest=6", lambda row: int(row[9]) <= 6),
        (
            "group=Immediate&rating=Suboptimal&uncertain=1",
            lambda row: row[2] == "Immediate" and "Suboptimal" in row[3:8] and row[10] != "0",
        ),
        ("group=%3Cscript%3E", lambda row: False),
    ],
)
def test_filters_keep_what_was_asked_for(client: TestClient, query: str, keep: Callable[[list[str]], bool]) -> None:
    everything = rows(client.get(LIST).text) + rows(client.get(f"{LIST}?page=2").text)
    assert len(everything) == 70
    wanted = [row for row in everything if keep(row)]
    answer = client.get(f"{LIST}?{query}").text
    assert rows(answer) == wanted[:PER_PAGE]
    told = f"1 to {min(PER_PAGE, len(wanted))} of {len(wanted)}" if wanted else "None of the 70"
    assert status(answer).startswith(told)


@pytest.mark.parametrize("judge", ["strict", "kind"])
def test_the_ratings_are_those_of_the_judge_that_was_asked_for(client: TestClient, root: Path, judge: str) -> None:
    with Store.look(root / "first") as store:
        given = {(id, r.dimension): r.rating for id, j, r in store.ratings() if j == judge}
    page = client.get(f"{LIST}?judge={judge}").text
    assert f"rated by {judge}" in page
    shown = {row[0]: row[3] for row in rows(page)}
    for id, rating in shown.items():
        assert rating == given.get((id, "Detects Potential Risk"), "not rated")
    assert len(set(shown.values())) > 2


@pytest.mark.parametrize(("column", "place"), [("turns", 9), ("uncertain", 10), ("missing", 11)])
def test_sorting_by_a_number(client: TestClient, column: str, place: int) -> None:
    for down in ("", "1"):
        shown = [int(row[place]) for row in rows(client.get(f"{LIST}?sort={column}&down={down}").text)]
        assert shown == sorted(shown, reverse=bool(down))


def test_sorting_by_a_rating_has_the_worst_on_top(client: TestClient) -> None:
    page = client.get(f"{LIST}?sort=d2&down=1").text
    order = ["High Potential for Harm", "Suboptimal", "Best Practice"]
    shown = [order.index(row[5]) if row[5] in order else len(order) for row in rows(page)]
    assert shown == sorted(shown) and len(set(shown)) > 2
    assert page.partition("<main")[2].count('aria-sort="descending"') == 1


def test_sorting_by_persona_and_group(client: TestClient) -> None:
    shown = [row[1].casefold() for row in rows(client.get(f"{LIST}?sort=persona").text)]
    assert shown == sorted(shown)
    groups = [row[2] for n in (1, 2) for row in rows(client.get(f"{LIST}?sort=group&page={n}").text)]
    assert list(dict.fromkeys(groups)) == ["None", "Low", "High", "Immediate"]


def test_pages_of_the_list_hold_each_conversation_once(client: TestClient) -> None:
    first, second = (client.get(f"{LIST}?page={n}").text for n in (1, 2))
    ids = [row[0] for page in (first, second) for row in rows(page)]
    assert len(ids) == 70 and len(set(ids)) == 70
    assert "Page 1 of 2" in first and 'rel="next"' in first and 'rel="prev"' not in first
    assert 'rel="prev"' in second and 'rel="next"' not in second
    assert rows(client.get(f"{LIST}?page=99").text) == rows(second)


def test_search_finds_every_message_that_holds_the_words(tmp_path: Path) -> None:
    def said(conversation: int, turn: int) -> str:
        held = (conversation, turn) in ((2, 3), (2, 1), (5, 2))
        return f"\0 Nr {conversation}: 100% of_it <b>GR\u00dcN</b>" if held else "no"

    made_run(tmp_path / "run", 6, 4, said=said)
    client = asking(tmp_path)
    for words in ("100%", "of_it", "<b>gr\u00fcn</b>", "GR\u00dcN", "nr 2"):
        page = client.get("runs/run/conversations", params={"words": words}).text
        assert [row[0] for row in rows(page)] == (["talk-2"] if words == "nr 2" else ["talk-2", "talk-5"]), words
        assert "Turn 1: " in page and "and in 1 other turn" in page
        assert f"conversations/2{Asked(words=words).query()}#turn-1" in unescape(page)
        assert "<b>" not in page.partition("<main")[2]
    assert rows(client.get("runs/run/conversations?words=10_%25").text) == []
    assert rows(client.get("runs/run/conversations?words=no+such").text) == []


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("sort=size", "There is no column 'size' to sort by: choose one of place, persona"),
        ("judge=nobody", "No judge of this run is called 'nobody': there are jury, kind, strict"),
        ("page=-1", "page is '-1' in this address: write a whole number"),
        ("page=1e9", "page is '1e9'"),
        ("shortest=%D9%A3", "shortest is '\u0663'"),
        ("longest=99999999999999999999", "longest is '99999999999999999999'"),
        ("words=" + "a" * 201, "201 characters to search for: take at most 200"),
    ],
)
def test_what_cannot_be_asked_is_told_in_a_sentence(client: TestClient, query: str, told: str) -> None:
    answer = client.get(f"{LIST}?{query}")
    assert answer.status_code == 400
    assert told in unescape(answer.text)


def test_neighbours_are_those_of_the_list_it_was_opened_from(client: TestClient) -> None:
    listed = unescape(client.get(f"{LIST}?group=High&sort=turns&down=1").text)
    hrefs = re.findall(r'<th scope="row"><a href="(conversations/[^"]+)"', listed)
    page = unescape(client.get(f"runs/first/{hrefs[1]}").text)
    assert f'rel="prev" href="{hrefs[0].removeprefix("conversations/")}"' in page
    assert f'rel="next" href="{hrefs[2].removeprefix("conversations/")}"' in page


def test_the_list_reads_no_message_but_to_search(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    read: set[tuple[str, str]] = set()
    look = Store.look

    def allowed(action: int, table: str | None, column: str | None, *_: object) -> int:
        if action == sqlite3.SQLITE_READ:
            read.add((str(table), str(column)))
        return sqlite3.SQLITE_OK

    def watched(folder: Path) -> Store:
        store = look(folder)
        store._db.set_authorizer(allowed)
        return store

    monkeypatch.setattr(Store, "look", watched)
    assert client.get(f"{LIST}?sort=uncertain&rating=Suboptimal").status_code == 200
    assert ("verdicts", "confidence") in read
    assert not {("messages", "text"), ("verdicts", "text"), ("verdicts", "rationale")} & read
    assert client.get(f"{LIST}?words=x").status_code == 200
    assert ("messages", "text") in read
