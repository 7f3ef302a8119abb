"""What the kernel tells of sockets of this process and of those below it, with real ones."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from vera_local.cli.sockets import Seen, beyond, watched
from vera_local.engine import heirs

PATIENCE = 60
"""Seconds until a socket that is there must have been seen."""

CHILD = """\
import socket, sys
kind, host, port = getattr(socket, sys.argv[1]), sys.argv[2], int(sys.argv[3])
ours = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind)
if port:
    ours.connect((host, port))
else:
    ours.bind((host, 0))
    if kind is socket.SOCK_STREAM:
        ours.listen()
print(ours.getsockname()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def opened(kind: str, host: str, port: int = 0) -> Iterator[tuple[int, int]]:
    """A process, that nothing guards, with such a socket: its id and the socket's own port."""
    command = [sys.executable, "-c", CHILD, kind, host, str(port)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=heirs.disowned(os.environ)) as child:
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line:
            pytest.skip(f"this machine has no way to {host}")
        yield child.pid, int(line)
        child.communicate()


def of(pid: int, seen: set[Seen]) -> list[str]:
    return [one.told for one in seen if one.pid == pid]


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_socket_that_anyone_can_reach_is_seen_with_its_process(host: str) -> None:
    with opened("SOCK_STREAM", host) as (pid, port):
        assert of(pid, beyond()) == [f"listening at {host}:{port}"]
    assert of(pid, beyond()) == []


@pytest.mark.parametrize(("host", "far"), [("192.0.2.7", "192.0.2.7:9"), ("::ffff:192.0.2.7", "::ffff:192.0.2.7:9")])
def test_a_socket_that_leads_elsewhere_is_seen(host: str, far: str) -> None:
    # To connect one of UDP sends nothing.
    with opened("SOCK_DGRAM", host, 9) as (pid, _):
        assert of(pid, beyond()) == [f"connected to {far}"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::ffff:127.0.0.1"])
def test_sockets_of_this_machine_alone_are_none_of_these(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = server.getsockname()[1]
        with opened("SOCK_STREAM", host) as (listening, _), opened("SOCK_DGRAM", host, near) as (connected, _):
            assert of(listening, beyond()) == of(connected, beyond()) == []
            assert of(os.getpid(), beyond()) == []


def test_what_is_bound_and_takes_no_connections_is_none_of_these() -> None:
    # As whoever looks for a free port does.
    with opened("SOCK_DGRAM", "0.0.0.0") as (pid, _):
        assert of(pid, beyond()) == []


def test_a_socket_that_is_gone_at_the_end_was_seen() -> None:
    with watched() as seen, opened("SOCK_STREAM", "0.0.0.0") as (pid, port):
        until = time.monotonic() + PATIENCE
        while not of(pid, seen) and time.monotonic() < until:
            time.sleep(0.05)
    assert of(pid, seen) == [f"listening at 0.0.0.0:{port}"]
