"""The hook in processes of their own: nothing could ever take it out of the process of the tests."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vera_local
from vera_local.engine import heirs
from vera_local.engine.attempts import Attempt, note, read, write
from vera_local.engine.destinations import Destination, is_here, of_lookup

ROOT = Path(vera_local.__file__).parents[1]

FAR = "192.0.2.7"  # of a block that leads nowhere
NAME = "chat.example.invalid"

HEAD = """\
import asyncio, json, os, socket, sys, threading
from vera_local.engine import guard
settings, port, folder = json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
guard.install(guard.Settings(**settings))
results = {}

def attempt(name, call):
    try:
        results[name] = repr(call())
    except guard.Refused as error:
        results[name] = "refused: " + error.strerror
    except Exception as error:
        cause = error
        while cause.__cause__ or cause.__context__:
            cause = cause.__cause__ or cause.__context__
        results[name] = ("refused: " if isinstance(cause, guard.Refused) else "other: ") + repr(error)

def udp():
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
"""

TAIL = """
print(json.dumps(results))
"""

FAR_CALLS = """
tcp = lambda: socket.socket()
far, name = ("192.0.2.7", 80), ("chat.example.invalid", 80)
attempt("connect", lambda: tcp().connect(far))
attempt("connect_ex", lambda: tcp().connect_ex(far))
attempt("connect by name", lambda: tcp().connect(name))
attempt("connect IPv6", lambda: socket.socket(socket.AF_INET6).connect(("2001:db8::1", 80)))
attempt("connect mapped", lambda: socket.socket(socket.AF_INET6).connect(("::ffff:192.0.2.7", 80)))
attempt("create_connection", lambda: socket.create_connection(name, 1))
attempt("UDP connect", lambda: udp().connect(("8.8.8.8", 80)))
attempt("sendto", lambda: udp().sendto(b"x", far))
attempt("sendto with flags", lambda: udp().sendto(b"x", 0, name))
attempt("sendmsg", lambda: udp().sendmsg([b"x"], [], 0, far))
attempt("bind by name", lambda: udp().bind(name))
attempt("getaddrinfo", lambda: socket.getaddrinfo("chat.example.invalid", 80))
attempt("getaddrinfo bytes", lambda: socket.getaddrinfo(b"chat.example.invalid", 80))
attempt("getaddrinfo of _socket", lambda: __import__("_socket").getaddrinfo("chat.example.invalid", 80))
attempt("name that begins as ours", lambda: socket.getaddrinfo("localhost%.example.invalid", 80))
attempt("gethostbyname", lambda: socket.gethostbyname("chat.example.invalid"))
attempt("gethostbyname_ex", lambda: socket.gethostbyname_ex("chat.example.invalid"))
attempt("gethostbyaddr", lambda: socket.gethostbyaddr("192.0.2.7"))
attempt("getnameinfo", lambda: socket.getnameinfo(far, 0))
attempt("asyncio connection", lambda: asyncio.run(asyncio.open_connection(*far)))
attempt("asyncio name", lambda: asyncio.run(asyncio.open_connection(*name)))
async def datagram():
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=far)
attempt("asyncio datagram", lambda: asyncio.run(datagram()))
async def lookup():
    return await asyncio.get_running_loop().getaddrinfo("chat.example.invalid", 80)
attempt("asyncio getaddrinfo", lambda: asyncio.run(lookup()))
attempt("a server for all", lambda: socket.create_server(("", 0)))
attempt("a listener that is not bound", lambda: tcp().listen())
class Wire:
    family = socket.AF_PACKET
attempt("the bare wire", lambda: sys.audit("socket.bind", Wire, ("lo", 0)))
import httpx, urllib.request
attempt("httpx", lambda: httpx.get("http://chat.example.invalid/", trust_env=False))
async def web():
    async with httpx.AsyncClient(trust_env=False) as client:
        await client.get("http://192.0.2.7/")
attempt("httpx asynchronous", lambda: asyncio.run(web()))
attempt("urllib", lambda: urllib.request.build_opener(urllib.request.ProxyHandler({})).open("http://192.0.2.7/"))

def in_thread():
    thread = threading.Thread(target=lambda: attempt("thread", lambda: tcp().connect(far)))
    thread.start()
    thread.join()
in_thread()

read_end, write_end = os.pipe()
if os.fork() == 0:
    results.clear()
    attempt("forked child", lambda: tcp().connect(far))
    os.write(write_end, results["forked child"].encode())
    os._exit(0)
results["forked child"] = os.read(read_end, 10000).decode()
os.wait()
"""

CALLS = [
    "connect", "connect_ex", "connect by name", "connect IPv6", "connect mapped", "create_connection", "UDP connect",
    "sendto", "sendto with flags", "sendmsg", "bind by name", "getaddrinfo", "getaddrinfo bytes",
    "getaddrinfo of _socket", "name that begins as ours", "gethostbyname", "gethostbyname_ex", "gethostbyaddr",
    "getnameinfo", "asyncio connection", "asyncio name", "asyncio datagram", "asyncio getaddrinfo",
    "a server for all", "a listener that is not bound", "the bare wire", "httpx",
    "httpx asynchronous", "urllib", "thread", "forked child",
]  # fmt: skip

NEAR_CALLS = """
def answered(family, address):
    with socket.socket(family) as ours:
        ours.connect(address)
        return ours.recv(2)
attempt("IPv4", lambda: answered(socket.AF_INET, ("127.0.0.1", port)))
attempt("another loopback address", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("127.8.9.1", 9)))
attempt("name", lambda: answered(socket.AF_INET, ("localhost", port)))
attempt("unspecified", lambda: answered(socket.AF_INET, ("0.0.0.0", port)))
attempt("mapped", lambda: answered(socket.AF_INET6, ("::ffff:127.0.0.1", port)))
attempt("IPv6", lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).connect(("::1", 9)))
attempt("unix", lambda: answered(socket.AF_UNIX, folder + "/there"))
attempt("unix datagram", lambda: [pair := socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM), pair[0].send(b"x")])
attempt("look-up", lambda: socket.getaddrinfo("LOCALHOST", port))
attempt("no host", lambda: socket.getaddrinfo(None, port))
attempt("address is no look-up", lambda: socket.getaddrinfo("192.0.2.7", port))
attempt("asyncio", lambda: asyncio.run(asyncio.open_connection("localhost", port)))
attempt("bind", lambda: udp().bind(("", 0)))
attempt("kernel", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).bind((0, 0)))
attempt("unix server", lambda: [ours := socket.socket(socket.AF_UNIX), ours.bind(folder + "/ours"), ours.listen()])
attempt("our own name", lambda: {socket.getfqdn(), socket.getfqdn("127.0.0.1")} == {socket.gethostname()} or 1 / 0)
def serve():
    from http.server import BaseHTTPRequestHandler, HTTPServer
    HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler).server_close()
attempt("a server", serve)
"""

NEAR = [
    "IPv4", "another loopback address", "name", "unspecified", "mapped", "IPv6", "unix", "unix datagram", "look-up",
    "no host", "address is no look-up", "asyncio", "bind", "kernel", "unix server", "our own name",
    "a server",
]  # fmt: skip

Results = dict[str, str]


def ran(script: str, file: Path, port: int = 0, **settings: Any) -> Results:
    """What each attempt of a script gave in a guarded process."""
    told = json.dumps({"log": str(file)} | settings)
    arguments = [sys.executable, "-c", HEAD + script + TAIL, told, str(port), str(file.parent)]
    done = subprocess.run(arguments, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    results: Results = json.loads(done.stdout)
    return results


def environment(**more: str) -> dict[str, str]:
    return heirs.disowned(os.environ) | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"} | more


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Path]:
    log = tmp_path_factory.mktemp("far") / "network.log"
    return ran(FAR_CALLS, log), log


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Results, Path]]:
    folder = tmp_path_factory.mktemp("near")
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        unix.bind(str(folder / "there"))
        unix.listen()
        for listener in (server, unix):
            threading.Thread(target=greet, args=(listener,), daemon=True).start()
        yield ran(NEAR_CALLS, folder / "network.log", server.getsockname()[1], every=True), folder / "network.log"


def greet(listener: socket.socket) -> None:
    """Say two bytes to whoever comes, until the listener is closed."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        connection.sendall(b"ok")
        connection.close()


@pytest.mark.parametrize("call", CALLS)
def test_every_way_out_is_refused(far: tuple[Results, Path], call: str) -> None:
    assert far[0][call].startswith("refused: "), far[0][call]


def test_another_interpreter_is_not_made(tmp_path: Path) -> None:
    results = ran('import _xxsubinterpreters\nattempt("made", _xxsubinterpreters.create)', tmp_path / "network.log")
    assert "interpreter creation failed" in results["made"]
    (attempt,) = read(tmp_path / "network.log")
    assert (attempt.destination, attempt.verdict) == ("an interpreter without the guard", "refused")


def test_a_named_address_of_this_machine_may_be_listened_at_and_every_one_may_not(tmp_path: Path) -> None:
    script = """
socket.socket.getsockname = lambda self: (addresses[0], 80)
for addresses in (["192.0.2.7"], ["192.0.2.8"], ["0.0.0.0"], ["::"], ["::ffff:127.0.0.1"]):
    attempt(addresses[0], lambda: tcp().listen())
"""
    results = ran("tcp = socket.socket\n" + script, tmp_path / "network.log", hosts=[FAR, "0.0.0.0", "::"])
    assert results[FAR] == "None"
    assert results["::ffff:127.0.0.1"] == "None"
    for address, told in (("192.0.2.8", "192.0.2.8:80"), ("0.0.0.0", "0.0.0.0:80"), ("::", "[::]:80")):
        assert results[address].startswith(f"refused: {told} is open to other machines")


def test_every_refused_attempt_is_in_the_log_with_destination_process_and_stack(far: tuple[Results, Path]) -> None:
    results, log = far
    noted = read(log)
    assert set(results) == set(CALLS)
    assert len(noted) >= len(CALLS)
    assert {a.verdict for a in noted} == {"refused"}
    places = {a.destination for a in noted}
    assert {f"{FAR}:80", f"name {NAME}", f"name of {FAR}", "[2001:db8::1]:80", "8.8.8.8:80"} <= places
    assert len({a.pid for a in noted}) == 2, "the child that was forked is to be another one"
    assert all("<module>" in " ".join(a.stack) for a in noted if "thread" not in " ".join(a.stack).lower())
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@pytest.mark.parametrize("call", NEAR)
def test_this_machine_is_within_reach(near: tuple[Results, Path], call: str) -> None:
    if call == "IPv6" and "Cannot assign requested address" in near[0][call]:
        pytest.skip("this machine has no IPv6 loopback")
    assert not near[0][call].startswith(("refused", "other")), near[0][call]


def test_what_is_allowed_is_noted_where_everything_is_asked_for(near: tuple[Results, Path]) -> None:
    noted = read(near[1])
    assert {a.verdict for a in noted} == {"allowed"}
    assert any(a.destination.startswith("unix:") for a in noted)
    assert any(a.destination.startswith("127.0.0.1:") for a in noted)


def test_what_is_allowed_is_not_noted_otherwise(tmp_path: Path) -> None:
    ran('attempt("look-up", lambda: socket.getaddrinfo("localhost", 80))', tmp_path / "network.log")
    assert not (tmp_path / "network.log").exists()


NAMED = """
import _socket
# A resolver that knows our names, in the place of the machine's.
answers = {"chat.example.invalid": "192.0.2.7", "other.example.invalid": "192.0.2.8"}
original = _socket.getaddrinfo
def resolve(host, port, *rest):
    sys.audit("socket.getaddrinfo", host, port, 0, 0, 0)
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers[host], port))]
socket._socket.getaddrinfo = resolve
def soon(address):
    ours = socket.socket()
    ours.settimeout(0.2)
    try:
        ours.connect(address)
    except (TimeoutError, OSError) as error:
        if isinstance(error, guard.Refused):
            raise
        return "tried"
attempt("its address before", lambda: soon(("192.0.2.7", 9)))
attempt("the name", lambda: socket.getaddrinfo("Chat.Example.invalid".lower(), 9))
attempt("its address", lambda: soon(("192.0.2.7", 9)))
attempt("another name", lambda: socket.getaddrinfo("other.example.invalid", 9))
attempt("another address", lambda: soon(("192.0.2.8", 9)))
attempt("a named address", lambda: soon(("192.0.2.99", 9)))
"""


def test_a_named_host_can_be_resolved_and_reached_and_no_other(tmp_path: Path) -> None:
    hosts = ["CHAT.example.invalid.", "192.0.2.99"]
    results = ran(NAMED, tmp_path / "network.log", hosts=hosts)
    assert results["its address before"].startswith("refused")
    assert "192.0.2.7" in results["the name"]
    assert results["its address"] == "'tried'"
    assert results["another name"].startswith("refused")
    assert results["another address"].startswith("refused")
    assert results["a named address"] == "'tried'"
    assert [a.destination for a in read(tmp_path / "network.log")] == [
        "192.0.2.7:9", "name other.example.invalid", "192.0.2.8:9",
    ]  # fmt: skip


def test_in_the_mode_log_attempts_go_through_and_are_noted(tmp_path: Path) -> None:
    script = 'attempt("connect", lambda: udp().connect(("192.0.2.7", 9)) or "through")'
    results = ran(script, tmp_path / "network.log", mode="log")
    # A machine without a route says so itself.
    assert "refused" not in results["connect"]
    assert [(a.destination, a.verdict) for a in read(tmp_path / "network.log")] == [("192.0.2.7:9", "let through")]


def test_what_is_tried_before_there_is_a_log_comes_into_it_later(tmp_path: Path) -> None:
    script = f"""
attempt("early", lambda: udp().connect(("192.0.2.7", 9)))
guard.configure(log={str(tmp_path / "late.log")!r})
results["left"] = str(len(guard.left()))
"""
    assert ran(script, tmp_path / "x", log=None)["left"] == "1"
    assert [a.destination for a in read(tmp_path / "late.log")] == ["192.0.2.7:9"]


def test_a_log_that_cannot_be_written_lets_nothing_through(tmp_path: Path) -> None:
    script = 'attempt("connect", lambda: udp().connect(("192.0.2.7", 9)))\nresults["left"] = str(len(guard.left()))'
    results = ran(script, tmp_path / "network.log", log=str(tmp_path / "absent" / "network.log"))
    assert results["connect"].startswith("refused")
    assert results["left"] == "1"


def test_the_guard_needs_the_standard_library_alone() -> None:
    code = (
        "import sys; before = set(sys.modules); from vera_local.engine import guard; guard.install();"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(new - {*sys.stdlib_module_names, '__mp_main__'})"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{'vera_local'}"


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True), ("127.255.0.3", True), ("::1", True), ("[::1]", True), ("::ffff:127.0.0.1", True),
        ("localhost", True), ("LocalHost.", True), ("", True), ("0.0.0.0", True), ("::1%lo", True),
        ("10.0.0.1", False), ("169.254.0.1", False), ("fe80::1%eth0", False), ("localhost.example.org", False),
        ("127.0.0.1.example.org", False), ("0x7f000001", False), ("127.1", False), ("münchen.example", False),
    ],
)  # fmt: skip
def test_what_counts_as_this_machine(host: str, here: bool) -> None:
    assert is_here(host) is here


@pytest.mark.parametrize("host", ["127.0.0.1%secret.example", "[::1%secret.example]", "127.0.0.1%lo"])
def test_what_a_resolver_takes_for_a_name_is_no_address(host: str) -> None:
    """It would ask another machine for it, whatever stands before the sign."""
    assert not is_here(host)
    assert of_lookup((host, 80)) == Destination(host, f"name {host}")


def test_lines_that_are_torn_or_foreign_are_passed_over(tmp_path: Path) -> None:
    log = tmp_path / "network.log"
    attempt = note("connect", "x" * 1000, "refused", sys._getframe())
    assert len(attempt.destination) == 255
    assert write(log, [attempt])
    size = log.stat().st_size
    log.write_bytes(log.read_bytes() + b'{"time": 1}\n[1]\nnot JSON \xff\n' + b"[" * 100_000 + b'\n{"tim')
    assert read(log) == (attempt,)
    assert read(log, size) == ()
    assert read(tmp_path / "absent") == ()
    assert isinstance(attempt, Attempt) and __file__ in attempt.stack[-1]


def test_a_link_in_the_place_of_the_log_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "network.log").symlink_to(tmp_path / "elsewhere")
    assert not write(tmp_path / "network.log", [note("connect", "there", "refused", None)])
    assert not (tmp_path / "elsewhere").exists()
