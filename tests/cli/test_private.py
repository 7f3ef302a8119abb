"""Whatever the user's settings, nothing of a run is made for others to read, and a crash leaves no memory behind."""

from __future__ import annotations

import itertools
import json
import os
import random
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi import Request as Asked
from fastapi.responses import JSONResponse

from tests.answers import at_random
from tests.chatbot.serving import Served
from tests.cli.conftest import Command
from vera_local.cli.private import NO_CORE, keep_private
from vera_local.engine.seam import Request


def crash(*before: str) -> int:
    """The status of a process that crashes after these lines, as `os.waitpid` gives it."""
    lines = ["import os, resource", *before, "os.abort()"]
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", "\n".join(lines)], os.environ)
    return os.waitpid(child, 0)[1]


def test_a_crash_leaves_no_core_dump() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    status = crash(
        f"resource.setrlimit(resource.RLIMIT_CORE, ({hard}, {hard}))",
        "from vera_local.cli.private import keep_private",
        "keep_private()",
    )
    assert os.WTERMSIG(status) == signal.SIGABRT
    assert not os.WCOREDUMP(status)


def test_children_have_the_same_limit() -> None:
    code = "from vera_local.cli.private import keep_private; import subprocess, sys; keep_private();"
    code += "subprocess.run([sys.executable, '-c', 'import resource; print(resource.getrlimit(resource.RLIMIT_CORE))'])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    limit = NO_CORE if hard == resource.RLIM_INFINITY else min(NO_CORE, hard)
    assert told.strip() == str((limit, limit))


def test_every_file_of_a_run_is_its_owner_s_alone(command: Command, tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "run", tmp_path / "else"
    elsewhere.mkdir()
    assert command("run", "--personas", "2", "--turns", "2", "--out", folder) == 0
    assert command("report", folder) == 0
    assert command("report", folder, "--out", elsewhere / "page.html", "--markdown", elsewhere / "sum.md") == 0
    assert command("score", folder, "--markdown", elsewhere / "paper.md") == 0
    other = tmp_path / "other"
    assert command("run", "--personas", "2", "--turns", "2", "--seed", "2", "--out", other) == 0
    assert command("compare", folder, other, "--force", "--csv", elsewhere / "all.csv") == 0
    assert command("export", folder, "--to", "vera-mh", folder / "sent") == 0
    made = [f for place in (folder, elsewhere) for f in place.rglob("*")]
    assert len(made) > 15
    assert {stat.S_IMODE(f.stat().st_mode) for f in made if f.is_file()} == {0o600}
    assert {stat.S_IMODE(f.stat().st_mode) for f in (folder, *made) if f.is_dir() and f != elsewhere} == {0o700}


def test_what_is_said_is_only_where_it_belongs(
    command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    folder = tmp_path / "run"
    assert command("run", "--personas", "2", "--turns", "4", "--out", folder) == 0
    said = "message 0."
    files = {f.name for f in tmp_path.rglob("*") if f.is_file() and said.encode() in f.read_bytes()}
    assert files == {"run.sqlite", "conversations.jsonl"}
    told = capfd.readouterr()
    assert said not in told.out + told.err + caplog.text


WORDS = ["".join(letters) for letters in itertools.product("bdfgklmn", "aeiou", "rstv", "aeiou")]


def long_winded(request: Request) -> str:
    """As a persona may speak: with what JSON and Python escape."""
    if request.pattern is not None:
        return at_random(request)
    words = random.Random(request.sampling.seed).sample(WORDS, 30)
    return f'{" ".join(words[:10])} "{words[10]}"\n{" ".join(words[11:])} I\'d not für one hour.'


RAISING = """
def make():
    def bot(message, history):
        if len(history) > 1:
            raise ValueError(f"field text is missing in {history!r}")
        return "Tell me more about your nights, if you like to."
    return bot
"""


def echoing() -> FastAPI:
    """Refuses a request as FastAPI does where its own model of it finds something missing."""
    app = FastAPI()

    @app.post("/talk")
    async def talk(request: Asked) -> JSONResponse:
        detail = [{"type": "missing", "loc": ["body", "text"], "msg": "Field required", "input": await request.json()}]
        return JSONResponse({"detail": detail}, 422)

    return app


SERVICE = """
kind = "http"
url = "{url}/talk"
reply = "reply"
request = {{history = "{{history}}"}}
"""


@pytest.mark.parametrize(("kind", "reason"), [("http", '"msg":"Field required"'), ("python", "field text is missing")])
def test_a_chatbot_that_quotes_what_it_fails_at_does_not_bring_it_into_a_terminal(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    kind: str, reason: str,
) -> None:  # fmt: skip
    monkeypatch.setattr("tests.cli.conftest.at_random", long_winded)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "raising_bot", raising=False)
    (tmp_path / "raising_bot.py").write_text(RAISING, encoding="utf-8")
    served = Served(echoing)
    tables = {"http": SERVICE.format(url=served.url), "python": 'kind = "python"\nfactory = "raising_bot:make"\n'}
    (tmp_path / "bot.toml").write_text(f"{tables[kind]}retries = 0\n", encoding="utf-8")
    folder = tmp_path / "run"
    try:
        asked = ("--personas", "2", "--turns", "4", "--chatbot", tmp_path / "bot.toml", "--out", folder)
        assert command("run", *asked) == 1
        assert command("score", folder, "--json") == 0
    finally:
        served.stop()
    lines = (folder / "conversations.jsonl").read_text(encoding="utf-8").splitlines()
    said = [m["text"] for line in lines for m in json.loads(line)["messages"]]
    assert len(said) == {"http": 2, "python": 6}[kind]
    parts = {text[place : place + 30] for text in said for place in range(len(text) - 29)}
    ways = {way for part in parts for way in (part, " ".join(part.split()), json.dumps(part)[1:-1], repr(part)[1:-1])}
    told = capfd.readouterr()
    with closing(sqlite3.connect(folder / "run.sqlite")) as db:
        (kept,) = {detail for (detail,) in db.execute("select detail from conversations")}
    shown = (told.out, told.err, kept, (folder / "manifest.json").read_text(encoding="utf-8"))
    # A terminal breaks lines.
    read = [" ".join(text.split()) for text in shown]
    assert [way for way in ways if any(way in text for text in (*shown, *read))] == []
    reasons = json.loads(told.out[told.out.index('\n{"folder"') :])["reasons"]
    assert reason in kept and reason in read[0] and reasons == {"chatbot": kept}


def test_the_store_s_own_files_are_private_while_a_run_goes_on(tmp_path: Path) -> None:
    """SQLite gives its log the permissions of the store, whatever the umask."""
    from vera_local.run.store import Store

    before = os.umask(0)
    try:
        with Store.open(tmp_path) as store:
            store.begin(())
            modes = {f.name: stat.S_IMODE(f.stat().st_mode) for f in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes.keys() >= {"run.sqlite", "run.sqlite-wal", "run.sqlite-shm"}
    assert set(modes.values()) == {0o600}


def test_a_copy_of_a_run_is_made_private_again(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert command("run", "--personas", "1", "--turns", "2", "--out", folder) == 0
    folder.chmod(0o755)
    (folder / "run.sqlite").chmod(0o644)
    assert command("score", folder) == 0
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "run.sqlite").stat().st_mode) == 0o600


def test_purge(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert command("run", "--personas", "1", "--turns", "2", "--out", folder) == 0
    assert command("purge", folder, "--yes") == 0
    assert not (folder / "conversations.jsonl").exists()
    assert command("run", "--personas", "1", "--turns", "2", "--out", folder) == 2
    for reader in ("show", "score", "stats", "report"):
        assert command(reader, folder) == 0
    assert command("compare", folder, folder) in (0, 2)


def test_a_purge_says_that_nothing_is_left_only_where_it_knows(
    command: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, said = tmp_path / "run", "nothing that was said is left in it; ratings"
    assert command("run", "--personas", "1", "--turns", "2", "--out", folder) == 0
    assert command("report", folder, "--out", folder / "page.html") == 0
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    capfd.readouterr()
    assert command("purge", folder, "--yes") == 0
    told = capfd.readouterr().out
    assert said not in told and "but perhaps in the files below" in told
    assert f"see whether it quotes: {folder / 'notes.txt'}" in told and "page.html" not in told
    assert not [f for f in folder.rglob("*") if f.is_file() and b"message 0." in f.read_bytes()]
    (folder / "notes.txt").unlink()
    assert command("purge", folder, "--yes") == 0
    assert said in capfd.readouterr().out


def test_the_limit_is_set_without_root() -> None:
    """A hard limit may be lowered by anybody, and what is there may be lower already."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        keep_private()
        os._exit(0 if resource.getrlimit(resource.RLIMIT_CORE) == (0, 0) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
