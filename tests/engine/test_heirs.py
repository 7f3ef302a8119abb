"""That the guard goes on to each Python that a guarded process starts, and to nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import vera_local
from vera_local.engine import heirs
from vera_local.engine.attempts import read

ROOT = Path(vera_local.__file__).parents[1]

EVIL = """\
import socket, sys
try:
    socket.socket().connect(("192.0.2.7", 80))
except OSError as error:
    print(type(error).__name__, *sys.argv[1:], flush=True)
"""

# How a process starts one that imports nothing of ours.
WAYS = {
    "a script": "subprocess.run([sys.executable, evil])",
    "code": "subprocess.run([sys.executable, '-c', open(evil).read()])",
    "a module": "subprocess.run([sys.executable, '-m', 'evil'], cwd=folder)",
    "os.system": "os.system(f'{sys.executable} {evil}')",
    "exec": "os.execv(sys.executable, [sys.executable, evil])",
    "a grandchild": "subprocess.run([sys.executable, '-c', f'import os; os.system(\"{sys.executable} {evil}\")'])",
    # As torch starts those that compile.
    "the path anew": (
        "subprocess.run([sys.executable, evil], env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)})"
    ),
    "settings that cannot be read": (
        'subprocess.run([sys.executable, evil], env={**os.environ, heirs.VARIABLE: \'{"mode": "log"\'})'
    ),
}

# How a process would start one that looks for no guard.
BARE = {"PATH": os.environ["PATH"]}
PAST = {
    "an environment of its own": f"subprocess.run([sys.executable, evil], env={BARE})",
    "bytes": "subprocess.run([sys.executable.encode(), evil], env={b'PATH': os.environb[b'PATH']})",
    "by name": "subprocess.run(['python3', evil], env={'PATH': os.path.dirname(sys.executable)})",
    "an executable": f"subprocess.run(['other', evil], executable=sys.executable, env={BARE})",
    "another path": "subprocess.run([sys.executable, evil], env={**os.environ, 'PYTHONPATH': '/x'})",
    "a link": "os.symlink(sys.executable, folder + '/p'); subprocess.run([folder + '/p', evil], env={})",
    "a script": (
        "open(evil, 'r+').write(f'#!{sys.executable}\\n#'); os.chmod(evil, 0o700); subprocess.run([evil], env={})"
    ),
    "exec": f"os.execve(sys.executable, [sys.executable, evil], {BARE})",
    "posix_spawn": f"os.waitpid(os.posix_spawn(sys.executable, [sys.executable, evil], {BARE}), 0)",
    "plain again": "subprocess.run([sys.executable, evil], env=heirs.disowned(os.environ) | {})",
    # The last one: what follows would find none, either.
    "no settings": "del os.environ[heirs.VARIABLE]; subprocess.run([sys.executable, evil])",
}

HEAD = """\
import os, subprocess, sys
from vera_local.engine import guard, heirs
folder = sys.argv[1]
evil = folder + "/evil.py"
guard.install(guard.Settings(log=folder + "/network.log"))
"""

SPAWNED = """\
import multiprocessing, socket, sys
from vera_local.engine import guard

def child():
    try:
        socket.socket().connect(("192.0.2.7", 80))
    except guard.Refused:
        print("refused in", multiprocessing.current_process().name, flush=True)

if __name__ == "__main__":
    guard.install(guard.Settings(log=sys.argv[1]))
    for method in ("spawn", "fork", "forkserver"):
        process = multiprocessing.get_context(method).Process(target=child, name=method)
        process.start()
        process.join()
"""


def environment(**more: str) -> dict[str, str]:
    return heirs.disowned(os.environ) | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"} | more


def said(code: str, *arguments: str | Path, **more: str) -> list[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env=environment(**more), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("way", WAYS)
def test_a_python_that_is_started_is_guarded_whatever_it_runs(tmp_path: Path, way: str) -> None:
    (tmp_path / "evil.py").write_text(EVIL, encoding="utf-8")
    assert said(HEAD + WAYS[way], tmp_path) == ["Refused"]
    if "cannot be read" not in way:
        (attempt,) = read(tmp_path / "network.log")
        assert attempt.destination == "192.0.2.7:80"
        assert any(call.endswith(":3 <module>") for call in attempt.stack)


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """What each such start said, in one process, and its folder."""
    folder = tmp_path_factory.mktemp("past")
    (folder / "evil.py").write_text(EVIL, encoding="utf-8")
    tries = [
        f"try:\n    {way}\nexcept guard.Refused as error:\n    print('Refused', error.strerror, flush=True)"
        for way in PAST.values()
    ]
    return said("\n".join([HEAD, *tries]), folder), folder


@pytest.mark.parametrize("way", PAST)
def test_a_python_that_would_find_no_guard_is_not_started(past: tuple[list[str], Path], way: str) -> None:
    said, folder = past
    told = said[list(PAST).index(way)]
    assert told.startswith("Refused /")
    assert told.endswith(
        " without the guard was refused; hand on this process's environment to what is started, or use --guard log"
    )
    noted = read(folder / "network.log")
    assert (len(said), len(noted)) == (len(PAST), len(PAST))
    assert {a.verdict for a in noted} == {"refused"}
    assert all(any(call.endswith(" <module>") for call in a.stack) for a in noted)


def test_such_a_python_is_started_and_noted_where_all_is_let_through(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(EVIL.replace("socket.socket", "print('started')#"), encoding="utf-8")
    assert said(HEAD + f"guard.configure(mode='log'); {PAST['an environment of its own']}", tmp_path) == ["started"]
    (attempt,) = read(tmp_path / "network.log")
    assert (attempt.call, attempt.verdict) == ("subprocess.Popen", "let through")
    assert attempt.destination == f"{sys.executable} without the guard"


def test_what_is_no_python_may_have_any_environment(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\necho started\n", encoding="utf-8")
    (tmp_path / "script").chmod(0o700)
    code = "\n".join(
        ["for program in (['/bin/echo', 'started'], [folder + '/script'], ['/bin/echo', 'started', sys.executable]):",
         "    subprocess.run(program, env={})"]
    )  # fmt: skip
    assert said(HEAD + code, tmp_path) == ["started", "started", f"started {sys.executable}"]
    assert read(tmp_path / "network.log") == ()


def test_processes_of_every_start_method_are_guarded_and_named(tmp_path: Path) -> None:
    script, log = tmp_path / "spawned.py", tmp_path / "network.log"
    script.write_text(SPAWNED, encoding="utf-8")
    done = subprocess.run([sys.executable, str(script), str(log)], env=environment(), capture_output=True, text=True)
    assert done.stdout.splitlines() == ["refused in spawn", "refused in fork", "refused in forkserver"], done.stderr
    assert [a.process for a in read(log)] == ["spawn", "fork", "forkserver"]


def test_what_a_machine_does_at_each_start_of_python_is_still_done(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('the site of', __name__)\n", encoding="utf-8")
    code = HEAD + "subprocess.run([sys.executable, '-c', 'print(2)'])"
    its_own, started = "the site of sitecustomize", "the site of sitecustomize"
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    assert said(code, tmp_path, PYTHONPATH=path) == [its_own, started, "2"]


def test_without_a_guarded_parent_a_process_is_left_alone() -> None:
    code = "import vera_local\nfrom vera_local.engine import child, guard\nchild.register()\nprint(guard.installed())"
    assert said(code) == ["False"]
    assert said(code, PYTHONPATH=os.pathsep.join([heirs.FOLDER, str(ROOT)])) == ["False"]


@pytest.mark.parametrize("path", [None, "", "/one", "/one:/two"])
def test_what_was_told_can_be_taken_away_again(monkeypatch: pytest.MonkeyPatch, path: str | None) -> None:
    before = {"HOME": "/home/x"} | ({} if path is None else {"PYTHONPATH": path})
    monkeypatch.setattr(os, "environ", environ := dict(before))
    monkeypatch.setattr(sys, "path", ["", "/lib"])
    heirs.tell("first")
    heirs.tell("second")
    assert (heirs.told(), sys.path) == ("second", ["", heirs.FOLDER, "/lib"])
    assert environ["PYTHONPATH"].split(os.pathsep).count(heirs.FOLDER) == 1
    assert heirs.disowned(environ) == {name: value for name, value in before.items() if value}


def test_a_program_that_is_its_users_own_is_left_alone(tmp_path: Path) -> None:
    asked = "from vera_local.engine import guard; print(guard.installed())"
    alone = f"heirs.disowned({{**os.environ, 'PYTHONPATH': {str(ROOT)!r}}})"
    code = f"subprocess.run([sys.executable, '-c', {asked!r}], env={alone})"
    assert said(HEAD + code, tmp_path) == ["False"]


def test_a_chatbot_that_is_a_program_is_started_and_left_alone(tmp_path: Path) -> None:
    asked = "from vera_local.engine import guard; print(int(guard.installed()))"
    code = f"""
import asyncio
from vera_local.chatbot.process import Process

async def ask():
    program = await Process.start([sys.executable, "-c", {asked!r}], 100, str)
    print(await program.exchange({{}}))
    await program.kill()

asyncio.run(ask())
"""
    assert said(HEAD + code, tmp_path) == ["0"]
    assert read(tmp_path / "network.log") == ()
