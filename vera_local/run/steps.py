"""In which order the work of several runs is done, so that each model is loaded as seldom as can be. Opens nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from vera_local.engine.placement import Residency
from vera_local.run.host import Key, key_of
from vera_local.run.needs import TALK, Part
from vera_local.run.plan import Plan
from vera_local.run.players import Player
from vera_local.run.wanted import Left

Grouping = Callable[[Plan], Hashable]
"""Runs whose conversations are held in one step have the same of this."""


class Step(NamedTuple):
    """Work of several runs on engines that are open together. `engine`: that of the judges who rate in it; None: the
    whole of what is left, or (`talks`) the conversations alone."""

    parts: tuple[Left, ...]
    talks: bool = False
    engine: Key | None = None

    @property
    def players(self) -> tuple[Player, ...]:
        """The models that are needed, one for each engine."""
        return tuple({key_of(p): p for part in self.parts for p in part.players}.values())

    @property
    def keys(self) -> frozenset[Key]:
        """What their engines go by."""
        return frozenset(map(key_of, self.players))

    def of(self, left: Left) -> Left:
        """What this step does of what is left in a run."""
        if self.engine is not None:
            return left.judged_on(self.engine)
        return left._replace(groups=(), check=False) if self.talks else left


def chatbot_of(plan: Plan) -> Hashable:
    """The engine of the chatbot; runs whose chatbot is none of ours are alike in that."""
    return key_of(plan.chatbot) if isinstance(plan.chatbot, Player) else None


def speakers_of(plan: Plan) -> Hashable:
    """The engines of all that hold the conversations."""
    return frozenset(map(key_of, plan.speakers))


def parts_of(lefts: Sequence[Left], grouping: Grouping) -> Iterator[Part]:
    """What each run has for which engine to do, in the stages in which engines work for each other."""
    names: dict[Hashable, str] = {}
    for left in lefts:
        stage = names.setdefault(grouping(left.plan), TALK if not names else f"{TALK} {len(names) + 1}")
        if left.talks:
            yield from (Part(left.plan, stage, player) for player in left.plan.speakers)
        yield from (Part(left.plan, None, player) for player in left.judges)


def steps_of(lefts: Sequence[Left], residency: Residency, grouping: Grouping) -> list[Step]:
    """All at the same time where all engines are awake together; else first all conversations, those of one group at a
    time, and then the judges of one engine after the other."""
    if residency is Residency.TOGETHER:
        return [Step(tuple(lefts))] if lefts else []
    groups: dict[Hashable, list[Left]] = {}
    for left in lefts:
        if left.talks:
            groups.setdefault(grouping(left.plan), []).append(left)
    talks = [_cut(Step((), talks=True), group) for group in groups.values()]
    engines = dict.fromkeys(key_of(player) for left in lefts for player in left.judges)
    judging = [_cut(Step((), engine=engine), lefts) for engine in engines]
    held = _like_before(talks, frozenset())
    return [*held, *_like_before(judging, held[-1].keys if held else frozenset())]


def loadings(steps: Iterable[Step], residency: Residency) -> Counter[Key]:
    """How often each engine is opened on the way through the steps."""
    opened: Counter[Key] = Counter()
    open_now: frozenset[Key] = frozenset()
    for step in steps:
        opened.update(step.keys - open_now)
        open_now = step.keys if residency is Residency.RELOAD else open_now | step.keys
    return opened


def _cut(step: Step, lefts: Iterable[Left]) -> Step:
    """The step with what it does of all these."""
    return step._replace(parts=tuple(part for left in lefts if (part := step.of(left))))


def _like_before(steps: Sequence[Step], open_now: frozenset[Key]) -> list[Step]:
    """In an order in which each needs as many as possible of the engines that the one before it left open."""
    waiting, ordered = list(steps), list[Step]()
    while waiting:
        following = max(waiting, key=lambda step: len(step.keys & open_now))
        waiting.remove(following)
        ordered.append(following)
        open_now = following.keys
    return ordered
