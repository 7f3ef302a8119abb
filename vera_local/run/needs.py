"""What a plan's engines need of this machine, so that they can be placed on it. Opens nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from vera_local.engine.machine import loaded_bytes, this_machine
from vera_local.engine.placement import Need
from vera_local.run.habits import FULL_MESSAGE, longest_reply
from vera_local.run.host import Key, key_of
from vera_local.run.plan import Plan
from vera_local.run.players import Player

TALK = "talk"
"""The stage in which conversations are held."""

WIDTH = 32
"""Conversations that an engine is to have room for at once: beyond that a step gains less than sleep and wake cost."""

PROMPT = 2000
"""Tokens taken for instructions and persona, or for a judge's question and answer; an estimate."""


class Part(NamedTuple):
    """What a player has to do in a plan. `stage`: engines of one stage work for each other; None: it judges, and its
    engine's stage is its own."""

    plan: Plan
    stage: str | None
    player: Player


def needs_of(plan: Plan, *, simulate: bool, judge: bool) -> dict[Key, tuple[Need, ...]]:
    """The needs of every engine that the plan has on this machine, by what it is made of; one for each stage."""
    return needs_of_all(_parts(plan, simulate=simulate, judge=judge))


def needs_of_all(parts: Iterable[Part]) -> dict[Key, tuple[Need, ...]]:
    """The needs of every engine that has a part on this machine, by what it is made of; one for each stage."""
    found: dict[Key, dict[str, Need]] = {}
    names: dict[str, Key] = {}
    for plan, stage, player in parts:
        if player.url is None:
            key = key_of(player)
            name = _name(key, names)
            need, of_one = _need(plan, player, name, stage or f"judge:{name}"), found.setdefault(key, {})
            most = max(need, of_one.get(need.stage, need), key=lambda n: n.kv_tokens_wanted)
            of_one[need.stage] = most
    return {key: tuple(of_one.values()) for key, of_one in found.items()}


def _parts(plan: Plan, *, simulate: bool, judge: bool) -> Iterator[Part]:
    """Each player with the stage that it works in."""
    yield from (Part(plan, TALK, player) for player in (plan.speakers if simulate else ()))
    yield from (Part(plan, None, seat.player) for seat in (plan.judges if judge else ()))


def _name(key: Key, names: dict[str, Key]) -> str:
    """The profile's, told apart from others of that name; what was given is noted in `names`."""
    number, name = 1, key.name
    while names.setdefault(name, key) != key:
        number += 1
        name = f"{key.name} ({number})"
    return name


def _need(plan: Plan, player: Player, name: str, stage: str) -> Need:
    profile, vllm = player.profile, player.engine == "vllm"
    return Need(
        name=name,
        weights_bytes=loaded_bytes(profile),
        kv_bytes_per_token=profile.kv_bytes_per_token,
        context=profile.context,
        gpus_each=(profile.engine.tensor_parallel_size or 1) if vllm else 1,
        replicas=plan.config.replicas if vllm else 1,
        stage=stage,
        kv_tokens_wanted=min(WIDTH, plan.count) * min(profile.context, _conversation(plan)),
        can_sleep=vllm and this_machine().device == "cuda",
        kv_bytes=profile.engine.kv_cache_memory_bytes if vllm else None,
    )


def _conversation(plan: Plan) -> int:
    """Tokens that a conversation of the plan is expected to take, whoever reads it; an estimate."""
    persona = max((player.draw.max_tokens for player in plan.simulators), default=0)
    return PROMPT + int(FULL_MESSAGE * plan.turns / 2 * (persona + longest_reply(plan.chatbot)))
