"""What a run may reach beyond this machine, and what becomes of it when more was tried. Knows no socket."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from vera_local.chatbot import HttpSettings, OpenAISettings, PythonSettings
from vera_local.engine import attempts, guard
from vera_local.engine.attempts import Attempt, Verdict
from vera_local.engine.seam import EngineError
from vera_local.run import manifest
from vera_local.run.plan import Plan

LOG = "network.log"

BEYOND: tuple[Verdict, ...] = ("refused", "let through")
"""What can become of an attempt to reach something beyond this machine."""

RAYS_QUESTION = "/ray/_common/usage/usage_lib.py:"
"""Where a helper process that Ray starts, which knows nothing of a run, asks whether it is in somebody's cloud. No
switch of Ray's stops it, so being refused there is no reason for a run to fail."""

Say = Callable[[str], None]

Tried = Callable[[], tuple[Attempt, ...]]
"""Tells what was attempted so far."""


class WentBeyond(EngineError):
    """Something in the run asked for a place beyond this machine that its config does not name."""


def hosts_of(plan: Plan) -> tuple[str, ...]:
    """The hosts that a plan's config names, for its models and its chatbot, each once; this machine may be among
    them."""
    players = (*plan.speakers, *(seat.player for seat in plan.judges))
    urls = [*(server.url for player in players for server in player.servers), *_chatbot_urls(plan)]
    named = [urlsplit(url).hostname for url in urls]
    own = plan.chatbot.hosts if isinstance(plan.chatbot, PythonSettings) else ()
    return tuple(dict.fromkeys(host for host in (*named, *own, _cluster(plan)) if host))


def _cluster(plan: Plan) -> str | None:
    """The host of the cluster's address; None where it is this machine."""
    address = plan.config.ray
    return None if address is None or ":" not in address else urlsplit(f"//{address}").hostname


def _chatbot_urls(plan: Plan) -> list[str]:
    match plan.chatbot:
        case OpenAISettings(url=url):
            return [url]
        case HttpSettings(url=url, start=start, end=end):
            return [url, *(call.url for call in (start, end) if call is not None)]
    return []


def allow(*plans: Plan) -> tuple[str, ...]:
    """From now on this process, and what it starts, may reach the hosts that the plans' configs name; gives them."""
    hosts = tuple(dict.fromkeys(host for plan in plans for host in hosts_of(plan)))
    guard.configure(mode=plans[0].config.guard, hosts=hosts)
    return hosts


@contextmanager
def logged(plan: Plan, say: Say) -> Iterator[None]:
    """Keep in the run's folder what is attempted meanwhile beyond this machine and the hosts of the config.

    Raises WentBeyond at the end where something was refused, and says so where it was let through now or something was
    attempted in earlier starts; the manifest counts all.
    """
    before = _before(plan.out)
    with watched(plan.out, say, before) as tried:
        try:
            yield
        finally:
            manifest.enter_network(plan.out, _mode(plan), hosts_of(plan), _added(before, counted(tried())))


@contextmanager
def watched(folder: Path, say: Say, before: Mapping[str, int]) -> Iterator[Tried]:
    """The same for what is in a folder, of whose earlier attempts `before` tells; no manifest is written."""
    with judged(folder, say) as tried:
        yield tried
    if earlier := sum(before.values()):
        told = f"{_times(earlier, 'attempt')} beyond this machine in earlier starts of this run"
        say(f"Network: {told}; see {folder / LOG}.")


def enter(plan: Plan, hosts: Sequence[str], tried: Iterable[Attempt]) -> None:
    """Add what was `tried` to the manifest of a run, that could reach these `hosts`."""
    noted, now = manifest.network_attempts(plan.out), counted(tried)
    manifest.enter_network(plan.out, _mode(plan), hosts, {v: noted.get(v, 0) + number for v, number in now.items()})


def _before(folder: Path) -> dict[str, int]:
    """The attempts of earlier starts: one that was killed has noted them in the log alone."""
    noted, logged = manifest.network_attempts(folder), counted(attempts.read(folder / LOG))
    return {verdict: max(noted.get(verdict, 0), logged[verdict]) for verdict in logged}


def counted(tried: Iterable[Attempt]) -> dict[str, int]:
    """Attempts by what became of them."""
    verdicts = [attempt.verdict for attempt in tried]
    return {verdict: verdicts.count(verdict) for verdict in BEYOND}


def _added(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {verdict: one[verdict] + other[verdict] for verdict in one}


@contextmanager
def kept(folder: Path) -> Iterator[Tried]:
    """Keep attempts in the log of `folder`; gives what tells those of this process and all that it started."""
    file = folder / LOG
    start = file.stat().st_size if file.exists() else 0
    guard.configure(log=str(file.absolute()))

    def tried() -> tuple[Attempt, ...]:
        # Its own are known even where the log cannot be written.
        mine = guard.left()
        others = {(a.time, a.pid, a.destination): a for a in attempts.read(file, start) if a not in mine}
        return (*mine, *(a for a in others.values() if a.verdict != "allowed"))

    yield tried


@contextmanager
def judged(folder: Path, say: Say) -> Iterator[Tried]:
    """As `kept`, and judged at the end; where something fails before, what was refused is said: it may be the cause."""
    with kept(folder) as tried:
        try:
            yield tried
        except Exception:
            if told := _refusals(tried(), folder / LOG):
                say(f"Network: {told}; what failed may have needed it.")
            raise
    judge(tried(), folder / LOG, say)


def judge(tried: tuple[Attempt, ...], log: Path, say: Say) -> None:
    """Raises WentBeyond where one of these attempts was refused; says how many there were where none was."""
    if told := _refusals(tried, log):
        raise WentBeyond(f"{told}; name the host in the config where the run needs it, or use --guard log")
    if refused := _refused(tried):
        say(f"Network: {_times(len(refused), 'attempt')} of Ray to learn which cloud it is in, refused; see {log}.")
    if let_through := len(tried) - len(refused):
        say(f"Network: {_times(let_through, 'attempt')} beyond this machine, let through as asked; see {log}.")


def _refused(tried: Iterable[Attempt]) -> list[Attempt]:
    return [attempt for attempt in tried if attempt.verdict == "refused"]


def _refusals(tried: Iterable[Attempt], log: Path) -> str:
    """What was refused; nothing where it was no more than Ray's question."""
    refused = _refused(tried)
    other = next((a for a in refused if not any(RAYS_QUESTION in call for call in a.stack)), None)
    if other is None:
        return ""
    number = _times(len(refused), "attempt")
    return f"{number} to reach something beyond this machine, such as {other.told()}; {log} has each with its stack"


def _times(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _mode(plan: Plan) -> str:
    """How the run is guarded; code that runs without the command line may not be."""
    return plan.config.guard if guard.installed() else "off"


def network_line(*plans: Plan) -> str:
    """What these runs may reach, for their user."""
    hosts = dict.fromkeys(host for plan in plans for host in hosts_of(plan))
    here = "this machine" if not hosts else f"this machine and {', '.join(hosts)}"
    if plans[0].config.guard == "log":
        return f"{here}; anything beyond is let through and noted in {LOG}"
    return f"{here}; anything beyond is refused"
