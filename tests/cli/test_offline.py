"""That nothing leaves, shown on the real thing: by the proof, traced from outside, and where there is no network."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).with_name("vera-local")
LONGEST = 900
"""Seconds for a small evaluation on a machine that others use, too."""

ALONE = ("unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")

ADDRESS = re.compile(r"sa_family=AF_INET6?,.*?(?:inet_addr\(|inet_pton\(AF_INET6, )\"([^\"]*)\"")
"""An address in a line of strace."""
NEAR = ("127.", "::1", "::ffff:127.")

# Stands for a package of somebody else that reports home from vLLM's own process.
TELLTALE = """\
import contextlib, multiprocessing, socket

def report():
    if multiprocessing.parent_process() is not None:
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as home:
            home.connect(("192.0.2.7", 9))
"""

# The proof itself with an engine that answers at random; before that it starts a process. Everything else is real.
PROOF = """\
import random, subprocess, sys
from vera_local.cli import main, offline
from vera_local.engine import heirs
from vera_local.engine.fake import FakeEngine
from vera_local.engine.seam import EngineDied

code, guarded = sys.argv.pop(1), sys.argv.pop(1) == "guarded"

def answer(request):
    draw = random.Random(request.sampling.seed)
    options = [option.replace("\\\\", "") for option in (request.pattern or "Hello.").strip("()$").split("|")]
    return draw.choice(options)

def opener(log):
    async def open_engine(opening):
        environment = None if guarded else heirs.disowned(heirs.os.environ)
        child = subprocess.Popen([sys.executable, "-c", code], env=environment, stdin=-1, stdout=-1, stderr=-3)
        # The other one lives on once it has told that it is ready.
        child.communicate() if guarded else child.stdout.readline()
        if child.returncode == 3:
            raise EngineDied("it did not start")
        return FakeEngine(answer)

    return open_engine

offline.opener = opener
main()
"""


def can_be_alone() -> bool:
    return bool(shutil.which("ip")) and works([*ALONE, "true"])


def works(command: Sequence[str]) -> bool:
    return bool(shutil.which(command[0])) and subprocess.run(command, capture_output=True).returncode == 0


def ran(*command: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([*([more.pop("first")] if "first" in more else []), str(ROOT)])
    return subprocess.run(
        [*map(str, command)], env=os.environ | {"PYTHONPATH": path} | more, capture_output=True, text=True,
        timeout=LONGEST, check=False,
    )  # fmt: skip


def beyond(trace: str) -> Iterator[str]:
    """Calls in strace's output that lead to another machine, or let one in."""
    open_to_all: set[tuple[str, str]] = set()
    for line in trace.splitlines():
        process, _, call = line.partition(" ")
        name, _, arguments = call.strip().partition("(")
        if name == "listen" and (process, arguments.partition(",")[0]) in open_to_all:
            yield line
        address = ADDRESS.search(line)
        if address is None or address[1].startswith(NEAR):
            continue
        if name in ("connect", "sendto", "sendmsg", "sendmmsg") and address[1] not in ("0.0.0.0", "::"):
            yield line
        if name == "bind":
            open_to_all.add((process, arguments.partition(",")[0]))


@pytest.mark.vllm
@pytest.mark.skipif(not works(["strace", "-f", "-o", "/dev/null", "true"]), reason="strace cannot trace here")
def test_an_evaluation_connects_to_nothing_beyond_this_machine_also_as_seen_from_outside(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    done = ran(
        "strace",
        "-f",
        "--seccomp-bpf",
        "-qq",
        "-e",
        "trace=network",
        "-o",
        trace,
        PROGRAM,
        "doctor",
        "--offline",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["beyond"] == 0 and told["sockets"] == []
    traced = trace.read_text(encoding="utf-8", errors="replace")
    assert len({line.split()[0] for line in traced.splitlines()}) >= 3, "vLLM's processes were to be seen"
    assert "inet_addr" in traced, "vLLM's processes were to talk to each other"
    assert list(beyond(traced)) == []


@pytest.mark.skipif(not works(["strace", "-f", "-o", "/dev/null", "true"]), reason="strace cannot trace here")
@pytest.mark.parametrize(
    ("code", "calls"),
    [
        ("socket.socket(type=socket.SOCK_DGRAM).connect(('192.0.2.7', 9))", ["connect"]),
        ("socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).connect(('2001:db8::1', 9))", ["connect"]),
        ("socket.socket(type=socket.SOCK_DGRAM).sendto(b'', ('192.0.2.7', 9))", ["sendto"]),
        ("socket.create_server(('', 0))", ["listen"]),
        ("socket.create_server(('127.0.0.1', 0))", []),
        ("socket.socket(type=socket.SOCK_DGRAM).connect(('127.0.0.1', 9))", []),
        ("socket.socket().bind(('', 0))", []),
    ],
)
def test_the_look_from_outside_sees_what_leads_elsewhere(tmp_path: Path, code: str, calls: list[str]) -> None:
    command = [sys.executable, "-c", f"import contextlib, socket\nwith contextlib.suppress(OSError):\n    {code}"]
    ran("strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=network", "-o", tmp_path / "trace", *command)
    found = beyond((tmp_path / "trace").read_text(encoding="utf-8"))
    assert [line.partition(" ")[2].strip().partition("(")[0] for line in found] == calls


@pytest.mark.vllm
def test_the_proof_fails_where_a_process_of_vllms_asks_for_another_machine(tmp_path: Path) -> None:
    (tmp_path / "telltale.py").write_text(TELLTALE, encoding="utf-8")
    installed = tmp_path / "telltale-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: telltale\nVersion: 1\n", encoding="utf-8")
    (installed / "entry_points.txt").write_text("[vllm.general_plugins]\ntelltale = telltale:report\n")
    done = ran(PROGRAM, "doctor", "--offline", first=str(tmp_path))
    assert done.returncode == 1, done.stderr
    assert re.search(r"^ *\d+  EngineCore\S* +refused +connect +192\.0\.2\.7:9", done.stdout, re.M), done.stdout
    assert re.search(r"telltale\.py:6 report$", done.stdout, re.M)
    assert re.search(r"^Attempts beyond this machine: [1-9]", done.stdout, re.M)


def test_the_proof_tells_who_asked_for_another_machine_and_fails() -> None:
    done = ran(sys.executable, "-c", PROOF, "import socket; socket.create_connection(('192.0.2.7', 80))", "guarded",
               "doctor", "--offline")  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert re.search(r"^ *\d+  python +refused +connect +192\.0\.2\.7:80$", done.stdout, re.M), done.stdout
    assert re.search(r"<string>:1 <module>$", done.stdout, re.M), "the calls that led there"
    assert done.stdout.endswith("Attempts beyond this machine: 1. Sockets that lead beyond it: 0.\n")
    assert "Traceback" not in done.stderr


def test_the_proof_tells_who_asked_where_the_refusal_stopped_the_engine() -> None:
    code = "import contextlib, socket, sys\nwith contextlib.suppress(OSError):\n    "
    code += "socket.create_connection(('192.0.2.7', 80))\nsys.exit(3)"
    done = ran(sys.executable, "-c", PROOF, code, "guarded", "doctor", "--offline")
    assert done.returncode == 1, done.stderr
    assert "vera-local: it did not start" in done.stderr and "Traceback" not in done.stderr
    assert re.search(r"^ *\d+  python +refused +connect +192\.0\.2\.7:80$", done.stdout, re.M), done.stdout
    assert done.stdout.endswith("Attempts beyond this machine: 1. Sockets that lead beyond it: 0.\n")


def test_the_proof_sees_the_sockets_of_a_process_without_a_guard_and_fails() -> None:
    held = "import socket, sys; ours = socket.create_server(('', 0)); print(1, flush=True); sys.stdin.read()"
    done = ran(sys.executable, "-c", PROOF, held, "alone", "doctor", "--offline", "--json")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["beyond"] == 0
    assert [seen["told"].rpartition(":")[0] for seen in told["sockets"]] == ["listening at 0.0.0.0"]


def test_the_proof_succeeds_where_nothing_was_asked_for() -> None:
    done = ran(sys.executable, "-c", PROOF, "import socket; socket.getaddrinfo('localhost', 1)", "guarded",
               "doctor", "--offline")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ *\d+  python +allowed +getaddrinfo +name localhost$", done.stdout, re.M), done.stdout
    assert done.stdout.endswith("Attempts beyond this machine: 0. Sockets that lead beyond it: 0.\n")


@pytest.mark.skipif(not can_be_alone(), reason="no network namespace can be made here (unshare, ip)")
def test_where_there_is_no_network_a_run_works_the_same(tmp_path: Path) -> None:
    arguments = ("--bundle", "psychosis", "--personas", "1", "--out", tmp_path / "run")
    bot = tmp_path / "near_bot.py"
    bot.write_text("def make():\n    return lambda message, history: 'I hear you.'\n", encoding="utf-8")
    done = ran(*ALONE, PROGRAM, "simulate", *arguments, "--chatbot", "python:near_bot:make", first=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "I hear you." in (tmp_path / "run" / "conversations.jsonl").read_text(encoding="utf-8")


@pytest.mark.vllm
@pytest.mark.skipif(not can_be_alone(), reason="no network namespace can be made here (unshare, ip)")
@pytest.mark.skipif(
    not (ROOT / ".venv" / "installed_for_run").exists(), reason="this checkout has no .venv made by scripts/setup.sh"
)
def test_the_one_command_works_where_there_is_no_network(tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = ran(*ALONE, "bash", ROOT / "scripts" / "run.sh", "--personas", "1", "--turns", "2", "--out", out)
    assert done.returncode == 0, done.stderr
    assert json.loads((out / "scores.json").read_text(encoding="utf-8"))
    network = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["network"]
    assert network == {"guard": "refuse", "hosts": [], "attempts": {"refused": 0, "let through": 0}}
