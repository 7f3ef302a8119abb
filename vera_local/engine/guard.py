"""Refuses what would leave the machine: connections and name look-ups beyond it. Knows no run, no chatbot, no server.

It is an audit hook, which Python asks before each such call and which nothing can take away again. It sees what Python
code does, in every thread, forked child and Python that is started; not what a library does with sockets of its own in
machine code, nor what other programs do. The standard library alone, since it is in place before anything else is
imported.
"""

from __future__ import annotations

import errno
import functools
import ipaddress
import json
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from vera_local.engine import attempts, heirs
from vera_local.engine.attempts import Attempt, Verdict

Mode = Literal["refuse", "log"]

_KERNEL = tuple(getattr(socket, name) for name in ("AF_NETLINK", "AF_ALG") if hasattr(socket, name))
"""Families whose sockets lead to this machine's kernel."""


class Refused(PermissionError):
    """Something beyond this machine was asked for."""


@dataclass(frozen=True)
class Settings:
    """What a guard does.

    `mode`: whether what leaves the machine is refused, or only noted. `hosts`: names and addresses beyond it that are
    allowed. `log`: file for what is refused or noted; without one it is kept for later. `every`: what is allowed is
    noted, too.
    """

    mode: Mode = "refuse"
    hosts: tuple[str, ...] = ()
    log: str | None = None
    every: bool = False


@dataclass
class _Process:
    """What this process knows: the addresses that allowed names have led to, all that was noted, and what of it is in
    no log yet."""

    settings: Settings = field(default_factory=Settings)
    installed: bool = False
    resolved: set[str] = field(default_factory=set)
    noted: list[Attempt] = field(default_factory=list)
    waiting: list[Attempt] = field(default_factory=list)


_own = _Process()


def install(settings: Settings | None = None) -> None:
    """Guard this process, and each Python that it starts from now on."""
    _use(settings or Settings())
    if not _own.installed:
        _own.installed = True
        _learn_addresses()
        _look_at_names_first()
        _know_our_own_name()
        sys.addaudithook(_watch)


def install_if_told() -> None:
    """Guard this process as the run that started it has told; nothing where there is none."""
    told = heirs.told()
    if told is None or _own.installed:
        return
    try:
        parts = json.loads(told)
        install(Settings(**parts | {"hosts": tuple(parts["hosts"])}))
    except (ValueError, TypeError, KeyError):
        install()


def installed() -> bool:
    """Whether this process is guarded."""
    return _own.installed


def as_told(**changes: Any) -> str | None:
    """What `heirs` is to tell a process that is to be guarded as this one is, with these settings changed; None where
    this one is not guarded."""
    return json.dumps(asdict(replace(_own.settings, **changes))) if _own.installed else None


def configure(**changes: Any) -> None:
    """Change settings of this process and of those that it starts from now on; nothing where it is not guarded."""
    if _own.installed:
        _use(replace(_own.settings, **changes))


def _use(settings: Settings) -> None:
    _own.settings = settings
    heirs.tell(json.dumps(asdict(settings)))
    if settings.log is not None and attempts.write(Path(settings.log), _own.waiting):
        _own.waiting = []


def left() -> tuple[Attempt, ...]:
    """What this process itself attempted beyond the machine and the allowed hosts."""
    return tuple(a for a in _own.noted if a.pid == os.getpid() and a.verdict != "allowed")


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if event.startswith("socket.") and event in _DESTINATIONS:
        destination = _DESTINATIONS[event](args)
        if destination is not None:
            _judge(event, *destination)


def _judge(call: str, host: str, told: str) -> None:
    """Note an attempt to reach `host`, which is `told` of it, and refuse it where that has to be."""
    verdict = _verdict(host)
    if verdict == "allowed" and not _own.settings.every:
        return
    # From where the call came: past this function and the hook.
    _keep(attempts.note(call.removeprefix("socket."), told, verdict, sys._getframe(2)))
    if verdict == "refused":
        raise Refused(
            errno.EACCES,
            f"{told} is beyond this machine and was refused; where the run needs it, name the host in the config, "
            "or use --guard log",
        )


def _keep(attempt: Attempt) -> None:
    log = _own.settings.log
    _own.noted.append(attempt)
    if log is None or not attempts.write(Path(log), [attempt]):
        _own.waiting.append(attempt)


def _verdict(host: str) -> Verdict:
    plain = _plain(host)
    if is_here(plain) or plain in _own.resolved or _named(plain):
        return "allowed"
    return "refused" if _own.settings.mode == "refuse" else "let through"


def _named(plain: str) -> bool:
    return any(plain == _plain(host) for host in _own.settings.hosts)


def is_here(host: str) -> bool:
    """Whether it is this machine, whatever its interfaces; Linux takes the unspecified address for it, too."""
    plain = _plain(host)
    if plain in ("", "localhost", _UNIX):
        return True
    address = _address(plain)
    return address is not None and (address.is_loopback or address.is_unspecified)


def _plain(host: str) -> str:
    """One way to write each host: lower case, ASCII, an address in its shortest form."""
    # Brackets stand around an address in a URL; with more than that within, a resolver would take it for a name.
    address = _address(host if "%" in host else host.strip("[]"))
    if address is not None:
        # What follows is an interface.
        return str(address).partition("%")[0]
    host = host.rstrip(".").lower()
    try:
        return host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return (isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped) or address


_UNIX = "unix:"

_Destination = tuple[str, str]
"""A host, and how the whole destination is told."""


def _of_address(args: tuple[Any, ...]) -> _Destination | None:
    """Where (socket, address) leads; None: nowhere beyond the kernel."""
    family, address = args[0].family, args[1]
    if address is None or family in _KERNEL:
        return None
    if family == socket.AF_UNIX:
        return _UNIX, f"{_UNIX}{os.fsdecode(address)!r}"
    if family in (socket.AF_INET, socket.AF_INET6):
        return _text(address[0]), _told(_text(address[0]), address[1])
    # Other families lead to other machines, hosts of virtual ones or the bare wire.
    told = f"{getattr(family, 'name', family)} {address!r}"
    return told, told


def _of_lookup(args: tuple[Any, ...]) -> _Destination | None:
    """The name that is looked up; None: nothing is, since it is an address already."""
    host = _text(args[0])
    return None if not host or _address(_plain(host)) else (host, f"name {host}")


def _of_reverse(args: tuple[Any, ...]) -> _Destination | None:
    host = _text(args[0][0] if isinstance(args[0], tuple) else args[0])
    return host, f"name of {host}"


def _text(host: Any) -> str:
    if isinstance(host, bytes | bytearray):
        return host.decode("utf-8", "replace")
    return "" if host is None else str(host)


def _told(host: str, port: Any) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


_DESTINATIONS: dict[str, Callable[[tuple[Any, ...]], _Destination | None]] = {
    "socket.connect": _of_address,
    "socket.sendto": _of_address,
    "socket.sendmsg": _of_address,
    "socket.getaddrinfo": _of_lookup,
    "socket.gethostbyname": _of_lookup,
    "socket.gethostbyaddr": _of_reverse,
    "socket.getnameinfo": _of_reverse,
}


def _learn_addresses() -> None:
    """Let connections go to the addresses that an allowed name leads to: the hook is asked before they are known."""
    for name, addresses in _RESOLVERS.items():
        setattr(socket, name, _learning(getattr(socket, name), addresses))


_RESOLVERS: dict[str, Callable[[Any], list[Any]]] = {
    "getaddrinfo": lambda answers: [answer[4][0] for answer in answers],
    "gethostbyname": lambda answer: [answer],
    "gethostbyname_ex": lambda answer: answer[2],
}
"""Function of `socket` -> the addresses in what it gives."""


def _learning(original: Callable[..., Any], addresses: Callable[[Any], list[Any]]) -> Callable[..., Any]:
    @functools.wraps(original)
    def resolve(host: Any, *args: Any, **named: Any) -> Any:
        answer = original(host, *args, **named)
        if _named(_plain(_text(host))):
            _own.resolved.update(_plain(str(address)) for address in addresses(answer))
        return answer

    return resolve


def _look_at_names_first() -> None:
    """Python resolves a name that is given to a socket's method before it asks the hook: ask here, before that."""
    for method, place in (("bind", 0), ("connect", 0), ("connect_ex", 0), ("sendto", -1), ("sendmsg", 3)):
        setattr(socket.socket, method, _asking_first(getattr(socket.socket, method), place))


def _asking_first(original: Callable[..., Any], place: int) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(self: socket.socket, *args: Any) -> Any:
        address = args[place] if len(args) > place else None
        if self.family in (socket.AF_INET, socket.AF_INET6) and isinstance(address, tuple) and address:
            name = _of_lookup(address)
            if name is not None:
                _judge("socket.getaddrinfo", *name)
        return original(self, *args)

    return method


def _know_our_own_name() -> None:
    """Let the full name of this machine be the one it has: Python's servers look it up when they begin to listen."""
    original = socket.getfqdn

    @functools.wraps(original)
    def getfqdn(name: str = "") -> str:
        ours = socket.gethostname()
        return ours if is_here(name.strip()) or name == ours else original(name)

    socket.getfqdn = getfqdn
