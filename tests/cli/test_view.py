"""The viewer on the command line: where it listens, what it says, how it ends."""

from __future__ import annotations

import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx
import psutil
import pytest

from tests.made_run import made_run
from vera_local.view.serving import listening, opened_in_browser, server

Process = Callable[..., "subprocess.CompletedProcess[str]"]
Viewing = tuple["subprocess.Popen[str]", str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_run(tmp_path_factory.mktemp("runs") / "first", 3)


@pytest.fixture
def viewing(folder: Path) -> Iterator[Viewing]:
    program = Path(sys.executable).with_name("vera-local")
    process = subprocess.Popen(
        [program, "view", str(folder), "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield process, process.stdout.readline().strip()
    process.kill()
    process.communicate(timeout=30)


def test_it_listens_on_this_machine_alone_and_ends_by_ctrl_c(viewing: Viewing) -> None:
    process, address = viewing
    url = httpx.URL(address)
    assert url.host == "127.0.0.1" and url.path.endswith("/runs/first/")
    assert len(url.path.split("/")[1]) >= 43
    with httpx.Client(trust_env=False) as client:
        assert "Suicide risk" in client.get(address).text
        assert client.get(f"http://127.0.0.1:{url.port}/").status_code == 404
    listening = [c.laddr for c in psutil.Process(process.pid).net_connections("inet") if c.status == psutil.CONN_LISTEN]
    assert [tuple(at) for at in listening] == [("127.0.0.1", url.port)]
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == "" and error.splitlines()[-1] == "vera-local: Stopped."
    assert url.path.split("/")[1] not in error


def test_each_start_has_a_token_of_its_own(folder: Path) -> None:
    tokens = set()
    for _ in range(3):
        with listening(0) as listener:
            tokens.add(server(folder, listener)[1].split("/")[3])
    assert len(tokens) == 3


def test_wrong_input_is_one_sentence(process: Process, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for arguments, told in (
            (("nowhere",), "nowhere: cannot be read (No such file or directory); name the folder of a run, or of runs"),
            (("empty",), "empty holds no run and no folder with one"),
            ((folder / "manifest.json",), "cannot be read (Not a directory)"),
            ((folder, "--port", port), f"--port {port}: Address already in use; name another one, or leave it out"),
            ((folder, "--port", "70000"), "--port 70000: ports are numbers from 1 to 65535"),
            ((folder, "--port", "-1"), "--port -1: ports are numbers"),
        ):
            ended = process("view", *arguments, "--no-browser")
            assert ended.returncode == 2 and ended.stdout == ""
            assert ended.stderr.startswith("vera-local: ") and told in ended.stderr
            assert ended.stderr.count("\n") == 1


def test_a_browser_is_opened_where_there_is_a_screen_and_is_not_told_the_token(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked, opened = threading.Event(), []

    def open_page(address: str) -> None:
        page = Path(unquote(urlsplit(address).path))
        opened.append((address, page.read_text(encoding="utf-8"), stat.S_IMODE(page.stat().st_mode)))
        asked.set()

    monkeypatch.setattr("webbrowser.open", open_page)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with opened_in_browser("http://127.0.0.1:1/token/", tmp_path):
        assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("DISPLAY", ":0")
    with opened_in_browser("http://127.0.0.1:1/token/", tmp_path):
        assert asked.wait(timeout=30)
    ((address, page, mode),) = opened
    assert address.startswith("file://") and "token" not in address
    assert 'content="0; url=http://127.0.0.1:1/token/"' in page and mode == 0o600
    assert list(tmp_path.iterdir()) == []
