"""One way for engines to share a machine: whether they fit so, where each goes, and the KV cache it gets. Pure: knows
no engine library, no model and no role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from vera_local.engine.machine import SHARE, Machine

OVERHEAD = {"cuda": 4 * 2**30, "cpu": 2 * 2**30}
"""Bytes that an engine takes on each of its GPUs beside weights and KV cache, asleep or awake: CUDA context, graphs,
activations; on a CPU: its processes (measured with the embedded model: 1.9 GB). Chosen on the safe side; never measured
on a GPU."""


class Residency(StrEnum):
    """Which engines of a run are awake at the same time."""

    TOGETHER = "together"
    """All, from the first stage to the last."""
    STAGES = "stages"
    """Those of one stage; the others sleep in host memory."""
    TURNS = "turns"
    """As many as fit, though the stage at work needs more; the others sleep in host memory."""
    RELOAD = "reload"
    """Those of one stage; the others are closed, and opened again when their stage comes."""


@dataclass(frozen=True, slots=True)
class Need:
    """What one engine needs in one stage; needs of one name are one engine, which is needed in several stages.

    `weights_bytes`: as loaded, over its `gpus_each` GPUs. `stage`: "talk", or "judge:NAME"; engines of one stage work
    for each other. `kv_tokens_wanted`: KV tokens over all its conversations that serve it well. `kv_bytes`: the KV
    cache that its profile sets, per GPU; None: what there is room for.
    """

    name: str
    weights_bytes: int
    kv_bytes_per_token: int
    context: int
    gpus_each: int
    replicas: int
    stage: str
    kv_tokens_wanted: int
    can_sleep: bool
    kv_bytes: int | None = None

    @property
    def weights_each(self) -> int:
        """Bytes of weights on each GPU."""
        return -(-self.weights_bytes // self.gpus_each)

    def kv_each(self, tokens: int) -> int:
        """Bytes of a KV cache for so many tokens on each GPU; what the profile sets wins."""
        return -(-tokens * self.kv_bytes_per_token // self.gpus_each) if self.kv_bytes is None else self.kv_bytes

    @property
    def wanted(self) -> int:
        """KV tokens that serve it well, a whole context at least."""
        return max(self.context, self.kv_tokens_wanted)


@dataclass(frozen=True, slots=True)
class Place:
    """Where one engine runs: the numbers of its GPUs among the visible ones (none: those that the engine takes itself,
    or the CPU), bytes of KV cache on each (None: as profile and engine have it), and whether it is put to sleep."""

    gpus: tuple[int, ...] = ()
    kv_bytes: int | None = None
    sleeps: bool = False


ANYWHERE = Place()
"""An engine that is alone on this machine, or hosted by another."""


@dataclass(frozen=True, slots=True)
class Hosted:
    """One engine and all the stages that need it."""

    need: Need
    stages: frozenset[str]


class Sharing:
    """Engines on a machine in one residency. `generous`: each gets the KV that serves it well, else one context."""

    def __init__(
        self, residency: Residency, generous: bool, engines: Sequence[Hosted], machine: Machine, free_ram: int | None
    ) -> None:
        self.residency = residency
        self.engines = engines
        self.machine = machine
        self.free_ram = free_ram
        self._generous = generous
        self.awake = _awake(residency, engines)
        # Where turns are taken, engines on different GPUs need not take them, so those are spread over all.
        spread = _awake(Residency.TOGETHER, engines) if residency is Residency.TURNS else self.awake
        self.groups = _spread(engines, spread, machine)

    def places(self) -> dict[str, tuple[Place, ...]] | None:
        """The places of each engine; None where they do not fit so."""
        kv: dict[tuple[str, int], int | None] = {}
        for together in self.awake:
            for gpu in self._gpus():
                given = self._share(gpu, together)
                if given is None:
                    return None
                for name, count in given.items():
                    known = [some for some in (kv.get((name, gpu)), count) if some is not None]
                    kv[name, gpu] = min(known, default=None)
        if not self._may_sleep():
            return None
        names = [engine.need.name for engine in self.engines]
        return {name: tuple(self._place(name, group, kv) for group in self.groups[name]) for name in names}

    def rooms(self) -> dict[int, int]:
        """Bytes for weights and KV caches of those awake, by GPU."""
        return {gpu: self._room(gpu, self._on(gpu, self._names())) for gpu in self._gpus()}

    def sleepers(self) -> Iterator[Need]:
        """Those that are not always awake."""
        if self.residency in (Residency.STAGES, Residency.TURNS):
            yield from (e.need for e in self.engines if any(self._shared(gpu) for gpu in self._gpus_of(e)))

    def asleep_bytes(self) -> int:
        """Host memory that all of them take at once: an engine that woke does not give its own back."""
        return sum(need.weights_bytes * need.replicas for need in self.sleepers())

    def _may_sleep(self) -> bool:
        enough = self.free_ram is None or self.asleep_bytes() <= SHARE * self.free_ram
        return enough and all(need.can_sleep for need in self.sleepers())

    def _place(self, name: str, group: tuple[int, ...], kv: Mapping[tuple[str, int], int | None]) -> Place:
        known = [count for gpu in group if (count := kv[name, gpu]) is not None]
        sleeps = any(need.name == name for need in self.sleepers())
        return Place(group if self.machine.device == "cuda" else (), min(known, default=None), sleeps)

    def _share(self, gpu: int, together: frozenset[str]) -> dict[str, int | None] | None:
        """Bytes of KV cache on one GPU for each engine awake there; None where they do not fit."""
        on = self._on(gpu, together)
        if len(self._resident(gpu, together)) == 1:
            # It measures by itself what is left. Only what surely cannot work is refused.
            fits = all(n.weights_each + n.kv_each(n.context) <= self.machine.memory_bytes for n in on)
            return {n.name: n.kv_bytes for n in on} if fits else None
        least = {n.name: n.wanted if self._generous else n.context for n in on}
        given = _split(on, self._room(gpu, self._resident(gpu, together)), least)
        if given is None or self.machine.device == "cuda":
            return None if given is None else dict(given)
        # What is left of RAM belongs to others, too.
        return {n.name: min(given[n.name], n.kv_each(n.wanted)) for n in on}

    def _room(self, gpu: int, resident: Sequence[Need]) -> int:
        return int(SHARE * self.machine.memory_bytes) - len(resident) * OVERHEAD[self.machine.device]

    def _resident(self, gpu: int, together: frozenset[str]) -> list[Need]:
        """Those that take something of a GPU while some of them are awake."""
        return self._on(gpu, together if self.residency is Residency.RELOAD else self._names())

    def _shared(self, gpu: int) -> bool:
        return len(self._on(gpu, self._names())) > 1

    def _on(self, gpu: int, names: Iterable[str]) -> list[Need]:
        """The needs of those on a GPU, as often as there are replicas on it."""
        chosen = [e.need for e in self.engines if e.need.name in set(names)]
        return [need for need in chosen for group in self.groups[need.name] if gpu in group]

    def _gpus_of(self, engine: Hosted) -> list[int]:
        return [gpu for group in self.groups[engine.need.name] for gpu in group]

    def _names(self) -> frozenset[str]:
        return frozenset(e.need.name for e in self.engines)

    def _gpus(self) -> range:
        return range(max(1, self.machine.gpus))


def merged(needs: Sequence[Need], machine: Machine) -> tuple[Hosted, ...]:
    """One engine for each name, with the most that any stage wants of it. RAM is one, however many processes use it."""
    found: dict[str, Hosted] = {}
    for need in needs:
        own = need if machine.device == "cuda" else replace(need, gpus_each=1)
        old = found.get(own.name, Hosted(own, frozenset()))
        most = max(own.kv_tokens_wanted, old.need.kv_tokens_wanted)
        found[own.name] = Hosted(replace(own, kv_tokens_wanted=most), old.stages | {own.stage})
    return tuple(found.values())


def _awake(residency: Residency, engines: Sequence[Hosted]) -> tuple[frozenset[str], ...]:
    """The sets of engines that have to be awake at the same time."""
    names = [e.need.name for e in engines]
    match residency:
        case Residency.TOGETHER:
            return (frozenset(names),)
        case Residency.TURNS:
            return tuple(frozenset({name}) for name in names)
        case _:
            stages = dict.fromkeys(stage for e in engines for stage in sorted(e.stages))
            return tuple(frozenset(e.need.name for e in engines if stage in e.stages) for stage in stages)


def _spread(
    engines: Sequence[Hosted], awake: Sequence[frozenset[str]], machine: Machine
) -> dict[str, tuple[tuple[int, ...], ...]]:
    """The GPUs of each replica: the largest first, each where those awake with it leave the most."""
    groups: dict[str, tuple[tuple[int, ...], ...]] = {}
    if machine.device == "cpu":
        return {e.need.name: ((0,),) * e.need.replicas for e in engines}
    taken = {(together, gpu): 0 for together in awake for gpu in range(machine.gpus)}
    for need in sorted((e.need for e in engines), key=lambda n: -_size(n)):
        mine = [together for together in awake if need.name in together]
        first = range(0, machine.gpus - need.gpus_each + 1, need.gpus_each)
        free = [tuple(range(gpu, gpu + need.gpus_each)) for gpu in first]
        free.sort(key=lambda group: max(taken[together, gpu] for together in mine for gpu in group))
        groups[need.name] = tuple(sorted(free[: need.replicas]))
        for together, gpu in ((t, gpu) for t in mine for group in groups[need.name] for gpu in group):
            taken[together, gpu] += _size(need)
    return groups


def _size(need: Need) -> int:
    return need.weights_each + need.kv_each(need.wanted)


def _split(on: Sequence[Need], room: int, least: Mapping[str, int]) -> dict[str, int] | None:
    """Bytes of KV cache for engines awake on one GPU; None where not even the `least` tokens fit.

    A profile's own size comes first. Of what is left each gets the same multiple of the tokens it wants, or one
    context where that is more.
    """
    left = room - sum(need.weights_each for need in on)
    if left < sum(need.kv_each(least[need.name]) for need in on):
        return None
    given = {need.name: need.kv_bytes for need in on if need.kv_bytes is not None}
    left -= sum(need.kv_bytes for need in on if need.kv_bytes is not None)
    rest = [need for need in on if need.kv_bytes is None]
    while rest:
        part = left / sum(need.kv_each(need.wanted) for need in rest)
        small = [need for need in rest if part * need.wanted < need.context]
        if not small:
            return given | {need.name: int(part * need.kv_each(need.wanted)) for need in rest}
        given |= {need.name: need.kv_each(need.context) for need in small}
        left -= sum(need.kv_each(need.context) for need in small)
        rest = [need for need in rest if need not in small]
    return given
