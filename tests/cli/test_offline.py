"""That nothing leaves, shown on the real thing: traced from outside, and where there is no network at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).with_name("vera-local")
LONGEST = 900
"""Seconds for a small evaluation on a machine that others use, too."""

ALONE = ("unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")

SOCKET = re.compile(
    r"(?:connect|sendto|sendmsg|sendmmsg|bind)\(.*sa_family=AF_INET6?,.*?(?:inet_addr|inet_pton)\(([^)]*)\)"
)


def can_be_alone() -> bool:
    return bool(shutil.which("ip")) and works([*ALONE, "true"])


def works(command: Sequence[str]) -> bool:
    return bool(shutil.which(command[0])) and subprocess.run(command, capture_output=True).returncode == 0


def ran(*command: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, command)], env=os.environ | more, capture_output=True, text=True, timeout=LONGEST, check=False
    )


@pytest.mark.vllm
@pytest.mark.skipif(not works(["strace", "-f", "-o", "/dev/null", "true"]), reason="strace cannot trace here")
def test_an_evaluation_connects_to_nothing_beyond_this_machine_also_as_seen_from_outside(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    done = ran("strace", "-f", "-qq", "-e", "trace=network", "-o", trace, PROGRAM, "doctor", "--offline", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["beyond"] == 0 and told["sockets"] == []
    traced = trace.read_text(encoding="utf-8", errors="replace")
    assert len({line.split()[0] for line in traced.splitlines()}) >= 3, "vLLM's processes were to be seen"
    addresses = [found for line in traced.splitlines() if (found := SOCKET.search(line))]
    assert [found[0] for found in addresses if not re.search(r'"(127\.|::1"|0\.0\.0\.0"|::")', found[1])] == []


@pytest.mark.skipif(not can_be_alone(), reason="no network namespace can be made here (unshare, ip)")
def test_where_there_is_no_network_a_run_works_the_same(tmp_path: Path) -> None:
    arguments = ("--bundle", "psychosis", "--personas", "1", "--out", tmp_path / "run")
    bot = tmp_path / "near_bot.py"
    bot.write_text("def make():\n    return lambda message, history: 'I hear you.'\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = ran(*ALONE, PROGRAM, "simulate", *arguments, "--chatbot", "python:near_bot:make", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    assert "I hear you." in (tmp_path / "run" / "conversations.jsonl").read_text(encoding="utf-8")
