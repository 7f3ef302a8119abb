"""Where the engines of a run go, which are awake together, and why. Pure: knows no engine library and no role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vera_local.engine.machine import SHARE, Machine
from vera_local.engine.sharing import ANYWHERE, OVERHEAD, Hosted, Need, Place, Residency, Sharing, merged
from vera_local.errors import UserError

__all__ = ["ANYWHERE", "OVERHEAD", "Arrangement", "Need", "Place", "Residency", "arrange"]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What was chosen, the place of each replica by the engine's name, why in one sentence, and the bytes of weights
    and KV cache that awake engines may take together on each GPU."""

    residency: Residency
    places: Mapping[str, tuple[Place, ...]]
    reason: str
    room: Mapping[int, int]


def arrange(needs: Sequence[Need], machine: Machine, free_ram: int | None = None) -> Arrangement:
    """Where the engines of a run go on this machine, and how they share it; `free_ram` in bytes, None: enough.

    Raises UserError, naming the model and the remedy, where they cannot work here.
    """
    engines = merged(needs, machine)
    _must_have_gpus(engines, machine)
    for residency, generous in _attempts(engines, machine):
        attempt = Sharing(residency, generous, engines, machine, free_ram)
        places = attempt.places()
        if places is not None:
            return Arrangement(residency, places, _reason(attempt, places), attempt.rooms())
    raise UserError(_refusal(engines, machine, free_ram))


def _attempts(engines: Sequence[Hosted], machine: Machine) -> Iterator[tuple[Residency, bool]]:
    """What is tried, the best first: all awake; what a stage needs; turns. First with ample KV, then with the least."""
    stages = {stage for e in engines for stage in e.stages}
    # Where some stage needs every engine, nobody could be closed or asleep there: that saves nothing.
    several = not any(all(stage in e.stages for e in engines) for stage in stages)
    yield Residency.TOGETHER, True
    if several and machine.device == "cuda":
        yield from ((Residency.STAGES, True), (Residency.RELOAD, True), (Residency.STAGES, False))
    else:
        # Memory decides about a batch's width, which a CPU has no use for.
        yield Residency.TOGETHER, False
    if several:
        yield Residency.RELOAD, False
    yield Residency.TURNS, False


def _must_have_gpus(engines: Sequence[Hosted], machine: Machine) -> None:
    if machine.device == "cpu":
        return
    for need in (e.need for e in engines):
        groups = machine.gpus // need.gpus_each
        if groups < need.replicas:
            asked = f"{need.replicas} engines of {need.name}" if need.replicas > 1 else need.name
            each = f" with {need.gpus_each} GPUs each" if need.replicas > 1 and need.gpus_each > 1 else ""
            raise UserError(
                f"{asked}{each} need {need.replicas * need.gpus_each} GPUs and this machine has {machine.gpus}; use "
                "fewer --replicas, a smaller tensor_parallel_size in the profile, or more GPUs"
            )


def _reason(attempt: Sharing, places: Mapping[str, tuple[Place, ...]]) -> str:
    names = _listed(places)
    if not places:
        return "No model is hosted here."
    memory = _told(attempt.machine)
    match attempt.residency:
        case Residency.TOGETHER if len(places) == 1:
            copies = len(places[names])
            return f"{names} is the only model hosted here{f', in {copies} engines' if copies > 1 else ''}."
        case Residency.TOGETHER:
            return f"{names} are awake together: with their KV caches they fit {memory}."
        case Residency.STAGES:
            return (
                f"{names} do not all fit {memory} with room for their conversations, so those that the stage at work "
                f"does not need sleep in host memory ({_gb(attempt.asleep_bytes())})."
            )
        case Residency.TURNS:
            return (
                f"Not even the models of one stage fit {memory} together, so {names} take turns: one is awake while "
                f"others sleep in host memory ({_gb(attempt.asleep_bytes())})."
            )
        case Residency.RELOAD:
            return (
                f"{names} do not all fit {memory} with room for their conversations and cannot sleep "
                f"({_wakeful(attempt)}), so models are closed and loaded again between the stages."
            )


def _wakeful(attempt: Sharing) -> str:
    """Why engines are not put to sleep."""
    if not all(e.need.can_sleep for e in attempt.engines):
        return "only vLLM's engines on a CUDA GPU do"
    wanted = sum(e.need.weights_bytes * e.need.replicas for e in attempt.engines)
    if attempt.free_ram is not None and wanted > SHARE * attempt.free_ram:
        return f"asleep they take {_gb(wanted)} of host memory, of which {_gb(attempt.free_ram)} are free"
    return "what the others keep on a GPU while they sleep leaves too little for one of them"


def _refusal(engines: Sequence[Hosted], machine: Machine, free_ram: int | None) -> str:
    """Why nothing works here and what would."""
    for need in (e.need for e in engines):
        least = need.weights_each + need.kv_each(need.context)
        if least > machine.memory_bytes:
            each = " on each of its GPUs" if need.gpus_each > 1 else ""
            return (
                f"{need.name} needs {_gb(least)}{each} for its weights and one context, and this machine has "
                f"{_told(machine)}; use a smaller or quantised model, a shorter context in its profile, or more GPUs "
                "(tensor_parallel_size)"
            )
    attempt = Sharing(Residency.TURNS, False, engines, machine, free_ram)
    names = _listed(e.need.name for e in engines)
    return (
        f"{names} do not fit {_told(machine)} together and cannot take turns ({_wakeful(attempt)}); use smaller or "
        "quantised models, fewer --replicas or more memory, or run `simulate` and `judge` as separate commands"
    )


def _told(machine: Machine) -> str:
    if machine.device == "cpu":
        return f"{_gb(machine.memory_bytes)} of memory"
    many = f"{machine.gpus} x " if machine.gpus > 1 else ""
    return f"{many}{machine.name} of {_gb(machine.memory_bytes)}"


def _listed(names: Iterable[str]) -> str:
    *most, last = [*names] or [""]
    return f"{', '.join(most)} and {last}" if most else last


def _gb(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
