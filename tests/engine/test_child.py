from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import vera_local
from vera_local.engine.child import HOST_VARIABLE, PLUGIN, be_loaded

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the parent-death signal is Linux's")

ROOT = Path(vera_local.__file__).parents[1]
PATIENCE = 60
"""Seconds after which a process that should have ended counts as left behind."""

READ_SIGNAL = """\
import ctypes
from vera_local.engine.child import register
register()
signal = ctypes.c_int(-1)
assert ctypes.CDLL(None).prctl(2, ctypes.byref(signal)) == 0
print(signal.value)
"""

# Each process shows its id once it is tied, and would live on for minutes.
CHAIN = """\
import os, subprocess, sys, time
from vera_local.engine.child import HOST_VARIABLE, register
left = int(sys.argv[1])
if HOST_VARIABLE not in os.environ:
    os.environ[HOST_VARIABLE] = str(os.getpid())
register()
print(os.getpid(), flush=True)
if left:
    subprocess.Popen([sys.executable, __file__, str(left - 1)])
time.sleep(300)
"""

LATE = """\
import multiprocessing, os, time
from vera_local.engine.child import HOST_VARIABLE, register

def child():
    print(os.getpid(), flush=True)
    parent = multiprocessing.parent_process().pid
    while os.getppid() == parent:
        time.sleep(0.01)
    register()
    print("lives on", flush=True)

if __name__ == "__main__":
    os.environ[HOST_VARIABLE] = str(os.getpid())
    multiprocessing.get_context("spawn").Process(target=child).start()
    time.sleep(300)
"""


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != HOST_VARIABLE}
    return kept | {"PYTHONPATH": str(ROOT)} | more


def signal_after_register(script: str, environment: dict[str, str]) -> int:
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_without_the_variable_nothing_happens() -> None:
    assert signal_after_register(READ_SIGNAL, environment()) == 0


def test_the_host_is_not_tied_to_the_shell_that_started_it() -> None:
    own = f"import os\nos.environ[{HOST_VARIABLE!r}] = str(os.getpid())\n"
    assert signal_after_register(own + READ_SIGNAL, environment()) == 0


def test_any_other_process_of_the_run_is_killed_with_its_parent() -> None:
    assert signal_after_register(READ_SIGNAL, environment(**{HOST_VARIABLE: str(os.getpid())})) == signal.SIGKILL


@pytest.mark.parametrize("links", [1, 2])
def test_kill_9_of_the_host_ends_the_whole_chain(tmp_path: Path, links: int) -> None:
    script = tmp_path / "chain.py"
    script.write_text(CHAIN, encoding="utf-8")
    host = subprocess.Popen(
        [sys.executable, str(script), str(links)], env=environment(), stdout=subprocess.PIPE, text=True
    )
    assert killed_with(host, links + 1) == ""


def test_a_process_whose_parent_is_already_gone_ends_itself(tmp_path: Path) -> None:
    script = tmp_path / "late.py"
    script.write_text(LATE, encoding="utf-8")
    host = subprocess.Popen([sys.executable, str(script)], env=environment(), stdout=subprocess.PIPE, text=True)
    assert killed_with(host, 1) == ""


@pytest.mark.parametrize(
    ("chosen", "left"),
    [(None, None), ("", ",vera_local"), ("lora", "lora,vera_local"), ("vera_local,lora", "vera_local,lora")],
)
def test_a_choice_of_plugins_does_not_leave_ours_out(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None, left: str | None
) -> None:
    monkeypatch.setattr(os, "environ", {} if chosen is None else {"VLLM_PLUGINS": chosen})
    be_loaded()
    be_loaded()
    assert os.environ.get("VLLM_PLUGINS") == left
    assert PLUGIN in {found.name for found in entry_points(group="vllm.general_plugins")}


def killed_with(host: subprocess.Popen[str], shown: int) -> str:
    """Kill `host` once `shown` process ids were written; what was written after that until nobody holds the pipe."""
    assert host.stdout is not None
    started = [int(host.stdout.readline()) for _ in range(shown)]
    host.kill()
    try:
        rest, _ = host.communicate(timeout=PATIENCE)
        return rest
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
