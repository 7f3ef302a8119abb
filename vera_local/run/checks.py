"""What is tried of a judge before a run trusts it. Knows no verdict.

What would make the run wrong stops it; what only takes something away from it is said and left at that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from vera_local.bundle import Question, Rubric
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.folder import ROLE_DEFAULTS
from vera_local.engine.probe import (
    HISTORY,
    probe_constraint,
    probe_history,
    probe_labels,
    probe_switch,
    probe_system,
    probe_thinking,
)
from vera_local.engine.replica import Replica, ReplicaLost
from vera_local.engine.seam import Engine, EngineDied, EngineError
from vera_local.errors import UserError
from vera_local.judge import Judge, Mode
from vera_local.judge.exhibit import Exhibit
from vera_local.run.plan import Plan
from vera_local.run.players import Player
from vera_local.run.seats import Seat

Say = Callable[[str], None]


async def try_judges(engines: Iterable[Engine], seats: Sequence[Seat], say: Say) -> None:
    """Try each of the engines for the judges that share it, before they are trusted; raises as `check_judges`. One that
    is lost meanwhile has others in its place."""
    for engine in engines:
        with suppress(ReplicaLost):
            await check_judges(engine, seats, say)


async def check_judges(engine: Engine, seats: Sequence[Seat], say: Say) -> None:
    """Try an engine for the judges that share it. Raises UserError where none of their verdicts could be trusted."""
    engine = engine.alone if isinstance(engine, Replica) else engine
    name = seats[0].player.profile.name
    await probe_constraint(engine, name)
    await probe_system(engine, name)
    if any(seat.evidence for seat in seats):
        await probe_history(engine, name)
    for probe in _lesser(engine, seats):
        if told := await _fault(probe):
            say(f"Warning: {told}")


def _lesser(engine: Engine, seats: Sequence[Seat]) -> Iterator[Awaitable[str]]:
    """Probes of what a run can do without."""
    player = seats[0].player
    name, template = player.profile.name, player.profile.template
    if can_be_held(player) and any(seat.mode is not Mode.THINK for seat in seats):
        yield probe_switch(engine, name, template)
    for seat in seats:
        if seat.mode is Mode.THINK and seat.repeat == 1:
            yield probe_thinking(engine, name, template, seat.budget)
    if any(seat.confidence for seat in seats):
        yield probe_labels(engine, name)
    if any(seat.window for seat in seats):
        yield _must_count(engine, name)


async def _must_count(engine: Engine, name: str) -> str:
    """UserError where nothing tells how long a transcript is."""
    try:
        return f"{await engine.count_tokens(HISTORY)} tokens were counted"
    except EngineDied:
        raise
    except EngineError as error:
        raise UserError(
            f"{name}: its server counts no tokens ({error}), so nothing can be cut to fit and --judge-window does "
            "nothing; serve the model with vLLM's own server, or use the vllm engine"
        ) from error


def can_be_held(player: Player) -> bool:
    """Whether a model reasons that we can hold from it: a server takes the switch for that, but no begun answer."""
    thinking = player.profile.template.thinking
    return thinking == "switch" or (thinking == "always" and player.url is None)


async def _fault(probe: Awaitable[str]) -> str:
    """What a probe found wrong; empty where it found nothing."""
    try:
        await probe
    except EngineDied:
        raise
    except (UserError, EngineError) as error:
        return str(error)
    return ""


@dataclass(slots=True)
class TooLong:
    """How many conversations are too long for each judge. The first one is told at once, all are counted at the end."""

    say: Say
    long: dict[str, list[int]] = field(default_factory=dict)

    async def of(self, judge: Judge, shown: Exhibit, rubric: Rubric) -> int | None:
        """Tokens that a conversation takes with its longest question; None where the judge's host counts none."""
        try:
            length = await judge.length(shown, asked(rubric))
        except EngineDied:
            raise
        except EngineError:
            return None
        if length > judge.engine.limits.context:
            self._note(judge, length)
        return length

    def say_all(self, conversations: int) -> None:
        """How many of all conversations were too long, where there was more than the one that was told."""
        for name, lengths in self.long.items():
            if len(lengths) > 1:
                self.say(
                    f"Warning: {len(lengths)} of {conversations} conversations did not fit the context of {name}; "
                    f"the longest takes up to {max(lengths)} tokens with a question"
                )

    def _note(self, judge: Judge, length: int) -> None:
        if judge.name not in self.long:
            window = "" if judge.window else "--judge-window shows it their first and last turns, or "
            self.say(
                f"Warning: a conversation does not fit the context of {judge.name} ({judge.engine.limits.context} "
                f"tokens; it takes up to {length} with a question), so answers about it can be missing as overflow; "
                f"{window}choose a judge with a larger context"
            )
        self.long.setdefault(judge.name, []).append(length)


async def longest_planned(judge: Judge, plan: Plan) -> int:
    """Tokens that a conversation of the plan can take in the judge's context, its longest question included.

    An estimate: each message counts as what its role may write at most, in that role's own tokens.
    """
    openings = [p.opening for p in plan.personas if p.opening is not None and not plan.simulators]
    begun = tuple(Message(Speaker.PERSONA, text) for text in sorted(openings, key=len)[-1:])
    questions = asked(plan.bundle.rubric)
    shown = await judge.look(Conversation("longest", "any", 1, begun, Ending.RECORDED), questions)
    return await judge.length(shown, questions) + plan.turns // 2 * sum(_written(plan))


def _written(plan: Plan) -> Iterator[int]:
    """Tokens that each side may write in a message; a chatbot of which nobody said so is taken for a usual one."""
    if plan.simulators:
        yield max(player.draw.max_tokens for player in plan.simulators)
    if isinstance(plan.chatbot, Player):
        yield plan.chatbot.draw.max_tokens
    else:
        yield getattr(plan.chatbot, "max_tokens", None) or ROLE_DEFAULTS.chatbot.max_tokens


def asked(rubric: Rubric) -> list[Question]:
    """The questions that a judge is asked."""
    return [q for q in rubric.questions if not q.auto]
