"""Nobody is answered but who was given the address, on this machine."""

from __future__ import annotations

import hmac
from pathlib import Path
from unittest import mock

import pytest
from starlette.testclient import TestClient

from tests.view.asking import PORT, TOKEN, asking
from vera_local.view.guard import HEADERS

PAGES = ("", "runs/first/", "runs/first/progress", "runs/first/conversations", "runs/first/conversations/1", "none")
OTHERS = ["example.org", f"example.org:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", "", f"0.0.0.0:{PORT}"]


@pytest.mark.parametrize("page", PAGES)
def test_every_address_needs_the_token(client: TestClient, page: str) -> None:
    for start in ("", "wrong/", f"{TOKEN}x/", f"{TOKEN[:-1]}/", f"x/{TOKEN}/", f"{TOKEN.upper()}/", "%00/", "\u00e9/"):
        answer = client.get(f"http://127.0.0.1:{PORT}/{start}{page}")
        assert answer.status_code == 404
        assert "talk-" not in answer.text and "first" not in answer.text


def test_the_token_is_compared_in_constant_time(client: TestClient) -> None:
    with mock.patch("hmac.compare_digest", wraps=hmac.compare_digest) as compare:
        assert client.get(f"http://127.0.0.1:{PORT}/wrong/").status_code == 404
    assert compare.call_args.args == (b"wrong", TOKEN.encode())


@pytest.mark.parametrize("host", OTHERS)
def test_another_name_for_this_machine_is_not_answered(client: TestClient, host: str) -> None:
    """As where a page from elsewhere had its own name point here."""
    answer = client.get("", headers={"Host": host})
    assert answer.status_code == 421
    assert "first" not in answer.text


def test_two_names_at_once_are_not_answered(client: TestClient) -> None:
    answer = client.get("", headers=[("Host", f"127.0.0.1:{PORT}"), ("Host", "example.org")])
    assert answer.status_code == 421


def test_both_names_of_this_machine_are_answered(root: Path) -> None:
    for host in ("127.0.0.1", "localhost"):
        assert asking(root, f"{host}:{PORT}").get("").status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(client: TestClient, method: str) -> None:
    assert client.request(method, "").status_code == 405


@pytest.mark.parametrize("page", PAGES)
def test_every_answer_keeps_the_browser_within_bounds(client: TestClient, page: str) -> None:
    for answer in (client.get(page), client.get(f"http://127.0.0.1:{PORT}/wrong/{page}"), client.post(page)):
        assert {name.lower() for name in HEADERS} <= {name.lower() for name in answer.headers}
        assert not [name for name in answer.headers if name.startswith("access-control") or name == "set-cookie"]
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert not [word for word in ("unsafe", "*", "http") if word in str(policy)]


def test_a_page_runs_and_styles_itself_by_what_was_sent_with_it_alone(client: TestClient) -> None:
    for page in PAGES[:2]:
        policy = client.get(page).headers["Content-Security-Policy"]
        assert "script-src 'sha256-" in policy and "style-src 'sha256-" in policy
        assert "connect-src 'self'" in policy and "form-action 'self'" in policy
