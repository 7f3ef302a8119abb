"""The self-test from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., int]
JUDGE = "smollm2-135m-instruct"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VERA_LOCAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_shows_the_numbers_and_where_the_card_is(
    command: Command, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command("selftest", "--bundle", "psychosis") == 0
    out, err = capfd.readouterr()
    for words in (
        f"Self-test of {JUDGE} with psychosis",
        "Overall: ",
        "a constant judge",
        "turned by words to the judge",
    ):
        assert words in out
    folder = Path("selftest") / f"{JUDGE}-psychosis"
    assert str(folder) in out
    assert {f.name for f in folder.iterdir()} >= {"card.json", "card.md"}
    assert "Self-test: 179/179 done" in err


def test_json_is_the_card(command: Command, here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert command("selftest", "--judge", JUDGE, "--out", here / "own", "--repeats", "1", "--json") == 0
    told = json.loads(capfd.readouterr().out)
    assert told == json.loads((here / "own" / "card.json").read_text(encoding="utf-8"))
    assert (told["bundle"]["name"], told["repeats"]) == ("suicide_risk", 1)


def test_run_then_quotes_it(command: Command, here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = ("run", "--bundle", "psychosis", "--personas", "2", "--out", here / "run")
    assert command(*run) == 0
    assert f"Self-test of {JUDGE}: no self-test on record" in " ".join(capfd.readouterr().out.split())
    assert command("selftest", "--bundle", "psychosis", "--json") == 0
    card = json.loads(capfd.readouterr().out)
    assert command(*run, "--json") == 0
    told = json.loads(capfd.readouterr().out)["cards"][JUDGE]
    assert (told["accuracy"], told["baseline"]) == (card["overall"]["accuracy"], card["overall"]["baseline"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--judge", "no-such-model"), 'there is no model "no-such-model"'),
        (("--judge-mode", "reason"), "name them with --judge"),
        (("--judge", JUDGE, "--judge-mode", "guess"), "--judge-mode guess"),
        (("--repeats", "0"), "--repeats"),
        (("--bundle", "nothing"), "there is no bundle 'nothing'"),
    ],
)
def test_wrong_input_is_one_sentence(
    command: Command, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str
) -> None:
    assert command("selftest", *arguments) == 2
    err = capfd.readouterr().err
    assert told in err
    assert len(err.strip().splitlines()) == 1


def test_a_judge_no_better_than_a_constant_one_is_named_wherever_its_ratings_are_shown(
    command: Command, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    one, two, page = here / "one", here / "two", here / "page.md"
    assert command("selftest", "--bundle", "psychosis", "--json") == 0
    assert json.loads(capfd.readouterr().out)["below_baseline"] is True
    for folder, seed in ((one, "1"), (two, "2")):
        run = ("run", "--bundle", "psychosis", "--personas", "3", "--seed", seed, "--out", folder)
        assert command(*run) == 0
        assert "do not rely on its ratings" in " ".join(capfd.readouterr().out.split())
    assert command("judge", two, "--judge", JUDGE, "--judge-mode", "reason") == 0
    told = f"Do not rely on {JUDGE}: in its self-test it was right"
    for arguments in (
        ("show", one),
        ("show", one, json.loads((one / "conversations.jsonl").read_text().splitlines()[0])["id"]),
        ("compare", one, two),
        ("compare", two),
        ("pool", one, two, "--force", "--out", here / "pool"),
        ("agree", two),
    ):
        capfd.readouterr()
        assert command(*arguments) == 0, arguments
        assert told in " ".join(capfd.readouterr().out.split()), arguments
    for arguments in (("score", one), ("compare", one, two), ("compare", two)):
        assert command(*arguments, "--markdown", page) == 0
        assert told in page.read_text(encoding="utf-8"), arguments
