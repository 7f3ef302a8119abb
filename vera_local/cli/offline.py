"""Shows that an evaluation leaves this machine alone: holds a small one and tells all that it connected to. Knows no
other check."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from vera_local.cli.sockets import Seen, watched
from vera_local.engine import attempts, guard
from vera_local.engine.attempts import Attempt
from vera_local.engine.seam import EngineError
from vera_local.errors import UserError
from vera_local.run import EngineName, RunConfig, Watcher, make_plan, network, opener
from vera_local.run import run as run_plan


async def prove(engine: EngineName, console: Console, *, as_json: bool) -> bool:
    """Evaluate one conversation of two messages with the embedded model, and print every connection that was tried.

    Whether none went beyond this machine, as the guard of each process and the kernel saw it. Raises EngineError or
    UserError, with all printed, where the evaluation failed.
    """
    assert guard.installed(), "what is not guarded proves nothing"
    guard.configure(every=True)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        plan = make_plan(RunConfig(personas=1, turns=2, out=out, engine=engine))
        failed = None
        with watched() as sockets:
            try:
                await run_plan(plan, opener(out / "engine.log"), Watcher(console))
            except network.WentBeyond:
                pass  # What it says is told below, of each attempt.
            except (EngineError, UserError) as error:
                failed = error  # What was refused may be why.
        tried = attempts.read(out / network.LOG)
    beyond = [attempt for attempt in tried if attempt.verdict != "allowed"]
    _show_json(tried, sockets, len(beyond)) if as_json else _show(tried, sockets, len(beyond))
    if failed is not None:
        raise failed
    return not beyond and not sockets


def _show(tried: Iterable[Attempt], sockets: Iterable[Seen], beyond: int) -> None:
    # Equal attempts of a process are one line, in the order of the first.
    for (line, calls), times in Counter(map(_told, tried)).items():
        print(f"{line}{f'  ({times} times)' if times > 1 else ''}")
        for call in calls:
            print(f"{'':10}{call}")
    for seen in sorted(sockets):
        print(f"{seen.pid:>8}  {seen.process:<16} the kernel has a socket {seen.told}")
    print(f"Attempts beyond this machine: {beyond}. Sockets that lead beyond it: {len(set(sockets))}.")


def _told(attempt: Attempt) -> tuple[str, tuple[str, ...]]:
    """One attempt in a line; for one beyond this machine also the calls that led to it."""
    a = attempt
    line = f"{a.pid:>8}  {a.process:<16} {a.verdict:<11} {a.call:<12} {a.destination}"
    return line, () if a.verdict == "allowed" else a.stack


def _show_json(tried: Iterable[Attempt], sockets: Iterable[Seen], beyond: int) -> None:
    seen = [socket._asdict() for socket in sorted(sockets)]
    print(json.dumps({"attempts": [asdict(a) for a in tried], "sockets": seen, "beyond": beyond}))
