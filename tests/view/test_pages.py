"""The runs of a folder, a run's first page and a conversation: what there is, the scores as they are, no way out."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.made_run import made_run
from tests.report.html.parsed import Parsed, at
from tests.view.asking import asking
from tests.view.reading import rows
from vera_local.report.html.text import visible
from vera_local.run.purging import purge_run
from vera_local.run.store import NAME, Store


def test_the_runs_of_a_folder_with_their_state(client: TestClient) -> None:
    page = client.get("").text
    told = {row[0]: row[1:] for row in rows(page)}
    assert told["first"][:4] == ["finished", "bot", "suicide_risk 0.2.0", "strict, kind"]
    assert told["first"][4] == "70 of 70"
    assert told["second"][0] == "not judged"
    assert 'href="runs/first/"' in page


def test_a_run_that_cannot_be_read_says_why_and_the_others_are_shown(tmp_path: Path) -> None:
    made_run(tmp_path / "good", 2)
    for name in ("newer", "older", "lost", "torn"):
        made_run(tmp_path / name, 2, score=False)
    (tmp_path / "no run").mkdir()
    for name, version in (("newer", 99), ("older", 1)):
        with closing(sqlite3.connect(tmp_path / name / NAME)) as db:
            db.execute(f"pragma user_version = {version}")
    (tmp_path / "lost" / NAME).unlink()
    (tmp_path / "torn" / "manifest.json").write_text("{", encoding="utf-8")
    client = asking(tmp_path)
    told = {row[0]: row[1] for row in rows(client.get("").text)}
    assert set(told) == {"good", "newer", "older", "lost", "torn"}
    assert told["good"] == "finished"
    assert "was written by a newer version of this program" in told["newer"]
    assert "`vera-local score" in told["older"]
    assert "is missing or empty" in told["lost"]
    assert "no manifest of a run" in told["torn"]
    for name in ("newer", "older", "lost", "torn"):
        answer = client.get(f"runs/{name}/")
        assert answer.status_code == 400
        assert told[name].removeprefix("Cannot be shown. ") in unescape(answer.text)


def test_every_number_of_a_run_is_that_of_its_scores(client: TestClient, root: Path) -> None:
    scores = json.loads((root / "first" / "scores.json").read_text(encoding="utf-8"))
    for judge in ("jury", "strict", "kind"):
        shown = Parsed.of(client.get(f"runs/first/?judge={judge}").text).numbers
        assert len(shown) > 200
        assert sum(number.pointer.startswith(f"/judges/{judge}/") for number in shown) > 200
        for number in shown:
            assert number.value == str(at(scores, number.pointer))


def test_ratings_are_those_of_the_judge_that_was_asked_for(client: TestClient) -> None:
    first, kind = client.get("runs/first/").text, client.get("runs/first/?judge=kind").text
    assert "Ratings by jury" in first and "This is what kind found" in first
    assert "Ratings by kind" in kind and "Ratings by jury" not in kind and "asks nothing itself" not in kind
    answer = client.get("runs/first/?judge=%3Cb%3E")
    assert answer.status_code == 400 and "No judge of this run is called" in answer.text and "<b>" not in answer.text


def test_failure_modes_lead_to_conversations_in_which_they_were_found(client: TestClient, root: Path) -> None:
    page = client.get("runs/first/?judge=strict").text
    scores = json.loads((root / "first" / "scores.json").read_text(encoding="utf-8"))
    found = {id for d in scores["judges"]["strict"]["decisions"] if d["rating"] == "Suboptimal" for id in d["examples"]}
    linked = re.findall(r'<figcaption><a href="(conversations/\d+)"><bdi>(.*?)</bdi>', page)
    assert found and found <= {id for _, id in linked}
    for href, id in linked[:3]:
        assert f"<h1><bdi>{id}</bdi></h1>" in client.get(f"runs/first/{href}").text


def test_a_run_that_went_on_since_it_was_scored_says_so(tmp_path: Path) -> None:
    made_run(tmp_path / "run", 12)
    assert "Older than the run" not in asking(tmp_path).get("runs/run/").text
    scores = tmp_path / "run" / "scores.json"
    told = json.loads(scores.read_text(encoding="utf-8"))
    told["judges"]["strict"]["conversations"] -= 2
    scores.write_text(json.dumps(told), encoding="utf-8")
    page = asking(tmp_path).get("runs/run/").text
    assert "Older than the run" in page and "2 conversations have been rated since" in page


def test_a_run_that_is_not_rated(client: TestClient) -> None:
    assert "Nothing has been rated yet" in client.get("runs/second/").text
    listed = client.get("runs/second/conversations").text
    assert len(rows(listed)) == 3 and "rated by" not in listed
    assert "No judge has rated this conversation." in client.get("runs/second/conversations/1").text


def test_a_conversation_with_turns_path_evidence_and_neighbours(client: TestClient, root: Path) -> None:
    page = client.get("runs/first/conversations/4").text
    with Store.look(root / "first") as store:
        c = store.conversation("talk-4")
        paths = {judge: list(store.path("talk-4", judge)) for judge in store.judges()}
    shown = re.findall(r'<li id="turn-(\d+)".*?<p class="said" dir="auto">(.*?)</p>', page, re.S)
    assert [(int(n), unescape(t)) for n, t in shown] == [(n, visible(m.text)) for n, m in enumerate(c.messages, 1)]
    steps = re.findall(r'<li id="(step-[\d-]+)"', page)
    assert len(steps) == len(set(steps)) == sum(map(len, paths.values()))
    for link in re.findall(r'href="#([^"]+)"', page.partition("<main")[2]):
        assert page.count(f'id="{link}"') == 1
    assert 'rel="prev" href="3"' in page and 'rel="next" href="5"' in page
    assert "The reply asks about it." in page and "Probability of this answer: 0.90" in page


def test_a_run_that_was_purged_says_so(tmp_path: Path) -> None:
    purge_run(made_run(tmp_path / "run", 4))
    client = asking(tmp_path)
    assert "What was said has been removed from this run." in client.get("runs/run/").text
    assert "[purged" in client.get("runs/run/conversations/1").text
    assert len(rows(client.get("runs/run/conversations").text)) == 4


@pytest.mark.parametrize(
    "end",
    [
        "runs/none/", "runs/first/conversations/0", "runs/first/conversations/71", "runs/first/conversations/x",
        "runs/..%2Ffirst/", "runs/%2E%2E/", "runs/first%2F..%2Fsecond/", "runs/.%2Ffirst/", "runs/first%00/",
        "runs/%2Fetc/", "other", "runs/first/manifest.json", "runs/first/progress/x",
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_and_no_way_leads_out(client: TestClient, end: str) -> None:
    answer = client.get(end)
    assert answer.status_code == 404
    assert "talk-" not in answer.text


def test_one_run_is_shown_by_its_own_name(root: Path) -> None:
    client = asking(root / "first")
    assert [row[0] for row in rows(client.get("").text)] == ["first"]
    assert client.get("runs/first/").status_code == 200
    assert client.get("runs/second/").status_code == 404


def test_a_run_that_comes_later_is_shown_and_one_with_a_strange_name(tmp_path: Path) -> None:
    made_run(tmp_path / "a", 1)
    client = asking(tmp_path)
    made_run(tmp_path / "b <i> 100% \u00e9?#", 1)
    page = client.get("").text
    hrefs = re.findall(r'<a href="(runs/[^"]+)"', page)
    assert len(hrefs) == 2
    assert all(client.get(href).status_code == 200 for href in hrefs)
    assert all(client.get(f"{href}conversations/1").status_code == 200 for href in hrefs)
    assert "<i>" not in page.partition("<main")[2]
