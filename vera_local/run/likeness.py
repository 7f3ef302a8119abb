"""What a run that was held tells of one to come: how long messages are, what was asked, how fast. Opens no engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vera_local.conversation import Speaker
from vera_local.engine.gpus import find_gpu
from vera_local.engine.machine import Machine
from vera_local.errors import UserError
from vera_local.report.usage import UsageRow
from vera_local.run.config_file import load_config
from vera_local.run.evaluate import bundle_of_run, must_hold_run
from vera_local.run.habits import Habits
from vera_local.run.paper import CHARACTERS, NO_WORK, Work
from vera_local.run.plan import Plan, make_plan
from vera_local.run.players import Player
from vera_local.run.rehearsal import JUDGING, Part, Place, RulerOf, rehearse
from vera_local.run.store import Length, Store
from vera_local.run.used import Used


@dataclass(frozen=True, slots=True)
class Factor:
    """What was asked over what a rehearsal of the same conversations had expected."""

    requests: float
    prompt: float
    computed: float
    output: float

    @classmethod
    def of(cls, asked: Work, expected: Work) -> Factor:
        """1 where nothing was expected."""
        pairs = (
            (asked.requests, expected.requests),
            (asked.prompt, expected.prompt),
            (asked.computed, expected.computed),
            (asked.output, expected.output),
        )
        return cls(*(seen / due if due else 1.0 for seen, due in pairs))

    def times(self, work: Work) -> Work:
        """What will be asked where `work` is expected."""
        prompt = work.prompt * self.prompt
        # Each is scaled by itself, and no more can be computed than is asked.
        computed = min(prompt, work.computed * self.computed)
        return Work(work.requests * self.requests, prompt, computed, work.output * self.output)


@dataclass(frozen=True, slots=True)
class Pace:
    """A stage's seconds for each token computed or written, while it worked, and the models that were at work."""

    seconds_per_token: float
    models: frozenset[str]


@dataclass(frozen=True, slots=True)
class Likeness:
    """What the run in `folder` tells, which was of a `bundle` (name and version) and of which so many `conversations`
    ended on `machine`. `overlap`: the part of the time of its stages, added up, that its engines worked in all, below 1
    where stages went on side by side."""

    folder: Path
    bundle: str
    machine: Machine
    conversations: int
    habits: Habits
    factors: Mapping[Place, Factor]
    paces: Mapping[str, Pace]
    overlap: float

    def must_suit(self, plan: Plan) -> None:
        """UserError where the plan is of another bundle: other questions, lengths and answers."""
        wanted = _told(plan.bundle.name, plan.bundle.version)
        if wanted != self.bundle:
            raise UserError(
                f"--like: {self.folder} is a run of {self.bundle} and this would be one of {wanted}; name a run of the "
                "same bundle"
            )

    def scaled(self, part: Part) -> Part:
        """A part as this run would have asked for it; as it is where this run had no such part."""
        factor = self.factors.get(part.place)
        if factor is None:
            return part
        work = factor.times(part.work)
        longer = factor.prompt / factor.requests if factor.requests else 1.0
        least, most = min(part.least, work.requests), max(part.most, work.requests)
        return replace(part, work=work, least=least, most=most, held=part.held * longer)

    def seconds(self, stage: str, parts: Sequence[Part], machine: Machine) -> float | None:
        """Of a stage, at the pace of this run; None where other models, or another machine, are at work in it."""
        pace = self.paces.get(stage)
        ours = [part for part in parts if part.player is not None]
        if pace is None or not ours or not {part.place.model for part in ours} <= pace.models or not self._on(machine):
            return None
        return pace.seconds_per_token * sum(part.work.computed + part.work.output for part in ours)

    def _on(self, machine: Machine) -> bool:
        """Whether it ran on such a machine, however its GPU is called."""
        mine, other = (find_gpu(m.name) if m.device == "cuda" else None for m in (self.machine, machine))
        alike = mine is other if mine is not None else self.machine.name == machine.name
        return alike and (self.machine.device, self.machine.gpus) == (machine.device, machine.gpus)

    def told(self) -> Iterator[str]:
        """What is taken from it, in sentences."""
        yield (
            f"Lengths of messages, answers, further tries and cache hits are those of {self.folder}, of which "
            f"{self.conversations} conversations ended."
        )
        yield (
            f"Its pace is that of {self.machine.name}, with so many conversations at once as it had; a larger run can "
            "be faster. It counts for stages with the same models on the same machine."
        )


async def likeness(folder: Path, ruler_of: RulerOf) -> Likeness:
    """What the run in `folder` tells; UserError where there is none or it kept no account of its work."""
    begun = must_hold_run(folder)
    plan = make_plan(load_config(None, {"out": folder}, begun["config"]), bundle_of_run(folder))
    with Store.read(folder) as store:
        rows = store.used.rows()
        if not rows:
            raise UserError(f"{folder} kept no account of what it asked, which --like needs; name a newer run")
        heads = store.heads()
        ended = sum(not head.unfinished for head in heads)
        habits = _habits(plan, store, sum(head.turns for head in heads if not head.unfinished), ended)
        done = {seat.judge: 0 for seat in plan.judges}
        for seat in plan.judges:
            done[seat.judge] += len(store.rated(seat.name))
        paces, overlap = _paces(store.used, rows, waits=not isinstance(plan.chatbot, Player))
    parts = (await rehearse(plan, habits, ruler_of)).parts
    factors = _factors(plan, parts, rows, ended, done)
    bundle = _told(begun["identity"]["bundle"]["name"], begun["identity"]["bundle"]["version"])
    return Likeness(folder, bundle, Machine(**begun["hardware"]), ended, habits, factors, paces, overlap)


def _told(bundle: str, version: str) -> str:
    return f"{bundle} {version}"


def _habits(plan: Plan, store: Store, said: int, ended: int) -> Habits:
    """`said` messages in all of the `ended` conversations."""
    judges = {seat.name: seat.judge for seat in plan.judges}
    answers: dict[str, Counter[tuple[str, str]]] = {judge: Counter() for judge in judges.values()}
    reasons: dict[str, list[int]] = {judge: [0, 0] for judge in judges.values()}
    for given in store.all_verdicts():
        judge, verdict = judges.get(given.judge), given.verdict
        if judge is None or verdict.answer is None:
            continue
        answers[judge][verdict.question, verdict.answer] += 1
        reasons[judge][0] += len(verdict.rationale)
        reasons[judge][1] += 1
    persona, chatbot = _message_lengths(plan, store)
    return Habits(
        persona=persona,
        chatbot=chatbot,
        held=said / (ended * plan.turns) if ended else 1.0,
        reasoning={judge: total / count / CHARACTERS for judge, (total, count) in reasons.items() if total},
        answers=answers,
    )


def _message_lengths(plan: Plan, store: Store) -> tuple[dict[str, float], float | None]:
    """Mean tokens of a persona's message by simulator, and of a chatbot's; by their characters where nobody told."""
    personas: dict[str, _Mean] = {}
    chatbot = _Mean()
    for length in store.lengths():
        if length.speaker is Speaker.CHATBOT:
            chatbot.add(length)
        elif plan.simulators and length.told:
            name = plan.simulators[(length.repeat - 1) // plan.config.repeats].profile.name
            personas.setdefault(name, _Mean()).add(length)
    return {name: mean.tokens / mean.messages for name, mean in personas.items()}, chatbot.value


@dataclass(slots=True)
class _Mean:
    tokens: float = 0.0
    messages: int = 0

    def add(self, length: Length) -> None:
        self.tokens += length.tokens if length.told else length.characters / CHARACTERS
        self.messages += length.told or length.messages

    @property
    def value(self) -> float | None:
        return self.tokens / self.messages if self.messages else None


def _factors(
    plan: Plan, parts: Iterable[Part], rows: Iterable[UsageRow], ended: int, rated: Mapping[str, int]
) -> dict[Place, Factor]:
    """By place; only what came to its end is expected to have been asked."""
    asked: dict[Place, Work] = {}
    for row in rows:
        place = Place(row.stage, row.role, row.model)
        used = Work(row.requests, row.usage.prompt, row.usage.computed, row.usage.output)
        asked[place] = asked.get(place, NO_WORK) + used
    expected: dict[Place, Work] = {}
    repeats = Counter(seat.judge for seat in plan.judges)
    count = plan.count
    for part in parts:
        judging = part.place.stage == JUDGING
        done = rated[part.place.model] / repeats[part.place.model] if judging else ended
        expected[part.place] = expected.get(part.place, NO_WORK) + part.work * (done / count)
    return {place: Factor.of(asked[place], due) for place, due in expected.items() if place in asked and due.requests}


def _paces(used: Used, rows: Iterable[UsageRow], *, waits: bool) -> tuple[dict[str, Pace], float]:
    """By stage, and the part of their time that was not beside that of another one.

    A stage's time is that of our engines, for it can stand open with nothing to do while another one goes on; where it
    `waits` for a chatbot of others it is all of its time.
    """
    tokens: Counter[str] = Counter()
    models: dict[str, set[str]] = {}
    for row in rows:
        tokens[row.stage] += row.usage.computed + row.usage.output
        models.setdefault(row.stage, set()).add(row.model)
    seconds = dict.fromkeys(models, 0.0)
    for stage in used.stages():
        if stage.stage in seconds:
            seconds[stage.stage] += stage.wall_s if waits else stage.busy_s
    timed = {name: n for name, n in tokens.items() if n and seconds[name]}
    paces = {name: Pace(seconds[name] / n, frozenset(models[name])) for name, n in timed.items()}
    in_all, added = sum(s.wall_s if waits else s.busy_s for s in used.sessions()), sum(seconds.values())
    return paces, min(1.0, in_all / added) if added else 1.0
