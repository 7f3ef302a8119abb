"""Where a call leads that Python tells of before it is made. Knows not what is allowed."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable
from typing import Any, NamedTuple

from vera_local.engine import starts

_KERNEL = tuple(getattr(socket, name) for name in ("AF_NETLINK", "AF_ALG") if hasattr(socket, name))
"""Families whose sockets lead to this machine's kernel."""

_INTERNET = (socket.AF_INET, socket.AF_INET6)

_UNIX = "unix:"

_BEYOND = (
    "is beyond this machine and was refused; where the run needs it, name the host in the config, or use --guard log"
)
_OPEN = "is open to other machines and was refused; listen at 127.0.0.1, or use --guard log"
_UNGUARDED = "was refused; hand on this process's environment to what is started, or use --guard log"
_APART = "was refused; use --guard log where the run needs it"


class Destination(NamedTuple):
    """What a call reaches: a host (or what no config can name), how all of it is told, and what is said where it is
    refused."""

    host: str
    told: str
    refusal: str = _BEYOND


def is_here(host: str) -> bool:
    """Whether it is this machine, whatever its interfaces; Linux takes the unspecified address for it, too."""
    host = plain(host)
    if host in ("", "localhost", _UNIX):
        return True
    address = _address(host)
    return address is not None and (address.is_loopback or address.is_unspecified)


def plain(host: str) -> str:
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


def _of_address(args: tuple[Any, ...]) -> Destination | None:
    """Where (socket, address) leads; None: nowhere beyond the kernel."""
    family, address = args[0].family, args[1]
    if address is None or family in _KERNEL:
        return None
    if family == socket.AF_UNIX:
        return Destination(_UNIX, f"{_UNIX}{os.fsdecode(address)!r}")
    if family in _INTERNET:
        return Destination(text(address[0]), _told(text(address[0]), address[1]))
    # Other families lead to other machines, hosts of virtual ones or the bare wire.
    told = f"{getattr(family, 'name', family)} {address!r}"
    return Destination(told, told)


def _of_binding(args: tuple[Any, ...]) -> Destination | None:
    """The same for the address that a socket takes: on the bare wire it then sends without naming one."""
    return None if args[0].family in (socket.AF_UNIX, *_INTERNET) else _of_address(args)


def of_listening(listener: socket.socket) -> Destination | None:
    """Where other machines can connect to a socket; None: nowhere."""
    if listener.family not in _INTERNET:
        return None
    host, port = listener.getsockname()[:2]
    address = _address(host)
    if address is None or address.is_loopback:
        return None
    told = _told(host, port)
    # The unspecified address takes what comes from anywhere.
    return Destination(told if address.is_unspecified else host, told, _OPEN)


def of_lookup(args: tuple[Any, ...]) -> Destination | None:
    """The name that is looked up; None: nothing is, since it is an address already."""
    host = text(args[0])
    return None if not host or _address(plain(host)) else Destination(host, f"name {host}")


def _of_reverse(args: tuple[Any, ...]) -> Destination | None:
    host = text(args[0][0] if isinstance(args[0], tuple) else args[0])
    return Destination(host, f"name of {host}")


def text(host: Any) -> str:
    """A host as a call is given it, in one type."""
    if isinstance(host, bytes | bytearray):
        return host.decode("utf-8", "replace")
    return "" if host is None else str(host)


def _told(host: str, port: Any) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _of_start(args: tuple[Any, ...]) -> Destination | None:
    """The Python that (program, ..., environment) would start without the guard; None for all else."""
    told = starts.unguarded(args[0], args[-1])
    return None if told is None else Destination(told, told, _UNGUARDED)


def _of_interpreter(_: tuple[Any, ...]) -> Destination:
    """Another interpreter in this process, which asks no hook of this one."""
    told = "an interpreter without the guard"
    return Destination(told, told, _APART)


LEADS: dict[str, Callable[[tuple[Any, ...]], Destination | None]] = {
    "socket.connect": _of_address,
    "socket.sendto": _of_address,
    "socket.sendmsg": _of_address,
    "socket.bind": _of_binding,
    "socket.getaddrinfo": of_lookup,
    "socket.gethostbyname": of_lookup,
    "socket.gethostbyaddr": _of_reverse,
    "socket.getnameinfo": _of_reverse,
    "subprocess.Popen": _of_start,
    "os.posix_spawn": _of_start,
    "os.exec": _of_start,
    "cpython.PyInterpreterState_New": _of_interpreter,
}
"""Event of Python's -> where the call with its arguments leads; None: nowhere beyond."""
