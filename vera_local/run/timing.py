"""Where a plan's engines would be, how many conversations they would hold, and for how long. Opens none of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vera_local.chatbot import Manners
from vera_local.engine.admission import FILL
from vera_local.engine.gpus import Gpu
from vera_local.engine.machine import SHARE, Machine, loaded_bytes
from vera_local.engine.placement import OVERHEAD, Arrangement, Need, Place, Residency, arrange
from vera_local.errors import UserError
from vera_local.run.host import Key, key_of
from vera_local.run.needs import needs_of
from vera_local.run.plan import Plan
from vera_local.run.players import Player
from vera_local.run.rehearsal import CHATBOT, TALK, Part
from vera_local.run.roofline import Box

SEQUENCES = 256
"""Requests that an engine answers at once where its profile does not say: vLLM's own number on most GPUs."""

HOST_LINK = 25e9
"""Bytes per second between host memory and a GPU while an engine goes to sleep or wakes."""


@dataclass(frozen=True, slots=True)
class Hosted:
    """An engine that this machine would have: KV tokens of each replica (None: nobody knows) and their GPUs."""

    name: str
    player: Player
    weights_bytes: int
    kv_tokens: int | None
    places: tuple[Place, ...]

    @property
    def gpus(self) -> frozenset[int]:
        """The numbers of all its GPUs."""
        return frozenset(number for place in self.places for number in place.gpus)

    def room(self, held: float) -> int:
        """How many conversations of so many tokens its replicas hold at once; one at least."""
        fit = self.most if self.kv_tokens is None or not held else len(self.places) * int(FILL * self.kv_tokens / held)
        return max(len(self.places), min(self.most, fit))

    @property
    def most(self) -> int:
        """How many requests its replicas answer at once, whatever their KV caches hold."""
        return len(self.places) * (self.player.profile.engine.max_num_seqs or SEQUENCES)


@dataclass(frozen=True, slots=True)
class Housing:
    """The engines by what they are made of, and how they share the machine; `problem`: why they cannot, or empty."""

    engines: Mapping[Key, Hosted]
    arrangement: Arrangement | None
    problem: str = ""


def house(plan: Plan, machine: Machine) -> Housing:
    """Place all that the plan hosts in-process; what a server hosts has no place here."""
    needs = {key: _here(of_one, machine) for key, of_one in needs_of(plan, simulate=True, judge=True).items()}
    try:
        arrangement = arrange([need for of_one in needs.values() for need in of_one], machine)
    except UserError as error:
        return Housing({}, None, str(error))
    players = {key_of(p): p for p in (*plan.speakers, *(seat.player for seat in plan.judges)) if p.url is None}
    engines = {
        key: _hosted(players[key], of_one[0], arrangement.places[of_one[0].name], machine)
        for key, of_one in needs.items()
    }
    return Housing(engines, arrangement)


def _here(needs: Sequence[Need], machine: Machine) -> list[Need]:
    """As they would be on `machine`, which need not be this one."""
    sleeps = machine.device == "cuda"
    return [replace(need, can_sleep=sleeps) for need in needs]


def _hosted(player: Player, need: Need, places: tuple[Place, ...], machine: Machine) -> Hosted:
    kv = places[0].kv_bytes if places else None
    if kv is None and machine.device == "cuda":
        # It is alone and takes what is left.
        share = player.profile.engine.gpu_memory_utilization or SHARE
        kv = max(0, int(share * machine.memory_bytes) - OVERHEAD["cuda"] - need.weights_each)
    tokens = None if kv is None else kv * need.gpus_each // need.kv_bytes_per_token
    return Hosted(need.name, player, loaded_bytes(player.profile), tokens, places)


@dataclass(frozen=True, slots=True)
class Line:
    """One part, how many of its conversations are in work at once (None: it does not fit), and seconds (None: nobody
    knows)."""

    part: Part
    at_once: int | None
    seconds: float | None


class Timing:
    """How long the parts of a plan take on its engines; `gpu` None: nothing is known of their speed."""

    def __init__(self, plan: Plan, housing: Housing, gpu: Gpu | None, parts: Sequence[Part]) -> None:
        self._plan, self._housing, self._gpu = plan, housing, gpu
        self._talkers = [part for part in parts if part.place.stage == TALK]

    def line(self, part: Part) -> Line:
        """One part."""
        if self._housing.problem:
            return Line(part, None, None)
        at_once, engine = self._at_once(part), self._engine(part)
        if engine is None or self._gpu is None:
            return Line(part, at_once, None)
        replicas = len(engine.places)
        width = max(1.0, at_once / replicas / (self._sides() if part.place.stage == TALK else 1))
        box = Box(self._gpu, len(engine.places[0].gpus) or 1)
        return Line(part, at_once, box.seconds(part.work * (1 / replicas), engine.player.profile, width))

    def stage(self, lines: Iterable[Line]) -> float | None:
        """The seconds of one stage's lines, those of one GPU one after the other; None where none is known."""
        known = [(line, line.seconds) for line in lines if line.seconds is not None]
        if not known:
            return None
        if known[0][0].part.place.stage != TALK and not self._together():
            return sum(seconds for _, seconds in known)
        busy: dict[int, float] = {}
        for line, seconds in known:
            engine = self._engine(line.part)
            for number in engine.gpus if engine else ():
                busy[number] = busy.get(number, 0.0) + seconds
        return max(busy.values()) + self._turns(known[0][0])

    def _turns(self, line: Line) -> float:
        """Seconds in which speakers that take turns on the GPU go to sleep and wake."""
        if self._residency() is not Residency.TURNS or line.part.place.stage != TALK:
            return 0.0
        moved = sum(engine.weights_bytes for engine in self._talking().values())
        return math.ceil(self._plan.count / (line.at_once or 1)) * self._plan.turns * moved / HOST_LINK

    def _at_once(self, part: Part) -> int:
        """Conversations in work; those of the speakers need room in each of their engines."""
        count = self._plan.count
        if part.place.stage != TALK:
            engine = self._engine(part)
            return min(count, engine.room(part.held) if engine else SEQUENCES)
        rooms = [engine.room(self._held(key)) for key, engine in self._talking().items()]
        return min(count, *rooms, self._places())

    def _held(self, key: Key) -> float:
        """Tokens that a conversation keeps in an engine, which may play both its sides."""
        sides: dict[str, float] = {}
        for part in self._talkers:
            if part.player is not None and key_of(part.player) == key:
                sides[part.place.role] = max(sides.get(part.place.role, 0.0), part.held)
        return sum(sides.values())

    def _talking(self) -> dict[Key, Hosted]:
        keys = [key_of(part.player) for part in self._talkers if part.player is not None]
        return {key: self._housing.engines[key] for key in keys if key in self._housing.engines}

    def _sides(self) -> int:
        """Engines among which the conversations in work are spread: each has one that speaks at a time."""
        if self._residency() is Residency.TURNS:
            return 1
        chatbots = {key_of(p.player) for p in self._talkers if p.player is not None and p.place.role == CHATBOT}
        simulators = {key_of(p.player) for p in self._talkers if p.player is not None and p.place.role != CHATBOT}
        return 2 if chatbots and simulators and chatbots != simulators else 1

    def _places(self) -> int:
        chatbot = self._plan.chatbot
        return chatbot.concurrency if isinstance(chatbot, Manners) else self._plan.count

    def _engine(self, part: Part) -> Hosted | None:
        return None if part.player is None else self._housing.engines.get(key_of(part.player))

    def _residency(self) -> Residency | None:
        return self._housing.arrangement.residency if self._housing.arrangement else None

    def _together(self) -> bool:
        return self._residency() is Residency.TOGETHER
