"""The judges of a run: their names, and a seat for each of their repeats. Knows no conversation and no speaker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from vera_local.bundle import Bundle
from vera_local.errors import UserError
from vera_local.judge import Mode
from vera_local.judge.jury import JURY, joins
from vera_local.run.config import EMBEDDED, RunConfig
from vera_local.run.players import Player, make_player, must_answer_at_once, must_leave_room, profile_of
from vera_local.run.roles import JudgeConfig


@dataclass(frozen=True, slots=True)
class Seat:
    """A judge's place in a run: it rates every conversation once.

    `name` stands in its verdicts: that of its `judge`, and `#2`, `#3` ... behind it for further repeats (`repeat`
    counts from 1). The budget of its reasoning is the player's `max_tokens`.
    """

    name: str
    judge: str
    repeat: int
    player: Player
    mode: Mode
    window: bool
    evidence: bool
    confidence: bool

    @property
    def budget(self) -> int:
        """Tokens it may reason with before it answers."""
        return 0 if self.mode is Mode.DIRECT else self.player.draw.max_tokens


def judges_of(config: RunConfig) -> tuple[JudgeConfig, ...]:
    """The judges of the config; the embedded model where it names none."""
    return config.judge or (JudgeConfig(model=EMBEDDED),)


def judge_name(judge: JudgeConfig) -> str:
    """What a judge is called: its profile's name, and its mode behind it unless it answers at once."""
    name = profile_of(judge).name
    return name if judge.mode == "direct" else f"{name}:{judge.mode}"


def seats_of(config: RunConfig, bundle: Bundle) -> tuple[Seat, ...]:
    """A seat for each repeat of each judge; UserError where two have one name or one has the jury's."""
    seats = tuple(seat for judge in judges_of(config) for seat in _repeated(judge, config, bundle))
    for name, times in Counter(seat.name for seat in seats).items():
        if times > 1:
            raise UserError(
                f"judge: {name} is named twice; for further opinions of one judge set its repeats "
                "(--judge-repeats N), or let it judge in another mode"
            )
        if name == JURY or joins(name):
            raise UserError(f"judge: no judge can be called {name}, which is what several together are called")
    return seats


def _repeated(judge: JudgeConfig, config: RunConfig, bundle: Bundle) -> Iterator[Seat]:
    name, player, mode = judge_name(judge), make_player(config.engine, bundle, "judge", judge), Mode(judge.mode)
    _must_reason_as_asked(player, mode)
    for repeat in range(1, judge.repeats + 1):
        own = name if repeat == 1 else f"{name}#{repeat}"
        yield Seat(own, name, repeat, player, mode, judge.window, judge.evidence, judge.confidence)


def _must_reason_as_asked(player: Player, mode: Mode) -> None:
    """UserError where a judge cannot reason in its mode, or where its reasoning leaves no room in its context."""
    name, template = player.profile.name, player.profile.template
    if mode is Mode.THINK and template.thinks is None:
        raise UserError(
            f"judge: nothing tells how {name} ends its own reasoning, which mode think needs to know; "
            "set template.thinking and template.think_end in a profile of it, or judge in mode reason"
        )
    if mode is not Mode.THINK:
        must_answer_at_once(player, "judge", "judge in mode think")
    if mode is not Mode.DIRECT:
        must_leave_room(player, "judge")
