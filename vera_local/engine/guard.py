"""Refuses what would leave the machine: connections and name look-ups beyond it. Knows no run, no chatbot, no server.

It is an audit hook, which Python asks before each such call and which nothing can take away again. It sees what Python
code does, in every thread, forked child and Python that is started; not what a library does with sockets of its own in
machine code, nor what other programs do. The standard library alone, since it is in place before anything else is
imported.
"""

from __future__ import annotations

import errno
import functools
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
from vera_local.engine.destinations import LEADS, Destination, is_here, of_listening, of_lookup, plain, text

Mode = Literal["refuse", "log"]


class Refused(PermissionError):
    """Something beyond this machine was asked for."""


@dataclass(frozen=True)
class Settings:
    """What a guard does.

    `mode`: whether what leaves the machine is refused, or only noted. `hosts`: names and addresses beyond it that are
    allowed. `log`: file for what is refused or noted; without one it is kept for later. `every`: what is allowed is
    noted, too. `open`: other machines may connect to what listens.
    """

    mode: Mode = "refuse"
    hosts: tuple[str, ...] = ()
    log: str | None = None
    every: bool = False
    open: bool = False


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
        _look_at_listeners()
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
    leads = LEADS.get(event)
    if leads is not None:
        destination = leads(args)
        if destination is not None:
            _judge(event, destination)


def _judge(call: str, destination: Destination) -> None:
    """Note an attempt, and refuse it where that has to be."""
    verdict = _verdict(destination.host)
    if verdict == "allowed" and not _own.settings.every:
        return
    # From where the call came: past this function and the hook.
    _keep(attempts.note(call.removeprefix("socket."), destination.told, verdict, sys._getframe(2)))
    if verdict == "refused":
        raise Refused(errno.EACCES, f"{destination.told} {destination.refusal}")


def _keep(attempt: Attempt) -> None:
    log = _own.settings.log
    _own.noted.append(attempt)
    if log is None or not attempts.write(Path(log), [attempt]):
        _own.waiting.append(attempt)


def _verdict(host: str) -> Verdict:
    host = plain(host)
    if is_here(host) or host in _own.resolved or _named(host):
        return "allowed"
    return "refused" if _own.settings.mode == "refuse" else "let through"


def _named(host: str) -> bool:
    """Whether a host, written as `plain` does, is one of those that are allowed."""
    return any(host == plain(named) for named in _own.settings.hosts)


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
        if _named(plain(text(host))):
            _own.resolved.update(plain(str(address)) for address in addresses(answer))
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
            name = of_lookup(address)
            if name is not None:
                _judge("socket.getaddrinfo", name)
        return original(self, *args)

    return method


def _look_at_listeners() -> None:
    """Python tells no hook that a socket begins to listen: look here who could connect to it."""
    # A method is no place to assign to for mypy, and `setattr` with a name that is known is none for ruff.
    socket.socket.listen = _looking_first(socket.socket.listen)  # type: ignore[method-assign]


def _looking_first(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def listen(self: socket.socket, *args: Any) -> Any:
        others = None if _own.settings.open else of_listening(self)
        if others is not None:
            _judge("socket.listen", others)
        return original(self, *args)

    return listen


def _know_our_own_name() -> None:
    """Let the full name of this machine be the one it has: Python's servers look it up when they begin to listen."""
    original = socket.getfqdn

    @functools.wraps(original)
    def getfqdn(name: str = "") -> str:
        ours = socket.gethostname()
        return ours if is_here(name.strip()) or name == ours else original(name)

    socket.getfqdn = getfqdn
