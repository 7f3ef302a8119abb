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
    alone = f"heirs.disowned(os.environ) | {{'PYTHONPATH': {str(ROOT)!r}}}"
    code = f"subprocess.run([sys.executable, '-c', {asked!r}], env={alone})"
    assert said(HEAD + code, tmp_path) == ["False"]
