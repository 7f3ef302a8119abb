"""A plan played through on paper: what each role would ask of its engine. Knows no time, no GPU and no folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from vera_local.bundle import Option, Persona, Question
from vera_local.bundle.paths import extreme, visits
from vera_local.chatbot import STUB, LocalChatbot
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.seam import ContextOverflow, Draw, Engine, Request
from vera_local.judge import Exhibit, State, check_persona
from vera_local.judge.exhibit import exhibit
from vera_local.judge.wording import EVIDENCE
from vera_local.run.checks import asked
from vera_local.run.habits import Habits
from vera_local.run.judging import make_judge
from vera_local.run.paper import BY_CHARACTERS, NO_WORK, Paper, Ruler, Work
from vera_local.run.plan import Plan
from vera_local.run.players import Player
from vera_local.run.seats import Seat
from vera_local.run.simulating import make_setting
from vera_local.simulate import Setting

RulerOf = Callable[[Player], Ruler]

TALK, JUDGING, CHECKING = "simulate", "judge", "check personas"
"""The stages, as a run's account calls them."""

SIMULATOR, CHATBOT, JUDGE = "simulator", "chatbot", "judge"
"""The roles, as it calls them."""


class Place(NamedTuple):
    """Where a run's account of its work has it: what several repeats of a judge do is one there."""

    stage: str
    role: str
    model: str


@dataclass(frozen=True, slots=True)
class Part:
    """What one role asks of its model in the whole run.

    `name` tells it from others of its place; `player` is None for a chatbot that is none of our models; `least` and
    `most` requests bound those expected; `held` tokens are kept for one conversation in the KV cache; `overflow` says
    what does not fit the model's context, or is empty. `verdicts` are given in the whole run, each with so many tokens
    of `reasons`.
    """

    place: Place
    name: str
    player: Player | None
    conversations: int
    work: Work
    least: float
    most: float
    held: float = 0.0
    overflow: str = ""
    verdicts: float = 0.0
    reasons: float = 0.0


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The parts, those of the speakers first, and a conversation as each simulator may hold it."""

    parts: tuple[Part, ...]
    samples: tuple[Conversation, ...]


async def rehearse(plan: Plan, habits: Habits, ruler_of: RulerOf) -> Rehearsal:
    """Play the plan through; raises UserError where a bundle's prompts cannot be filled."""
    pools = [_Pool(plan, habits, ruler_of, pool) for pool in range(max(1, len(plan.simulators)))]
    samples = tuple([await pool.talk() for pool in pools])
    count = plan.count
    judges = [await _judged(plan, seat, habits, ruler_of(seat.player), samples) for seat in plan.judges]
    checks = [await _checked(plan, ruler_of, samples)] if plan.config.check_personas else []
    return Rehearsal((*_speakers(plan, pools, count), *judges, *checks), samples)


class _Pool:
    """The conversations with one simulator, each persona's held once."""

    def __init__(self, plan: Plan, habits: Habits, ruler_of: RulerOf, pool: int) -> None:
        self._plan, self._habits = plan, habits
        self.player = plan.simulators[pool] if plan.simulators else None
        self._chatbot = plan.chatbot if isinstance(plan.chatbot, Player) else None
        persona = BY_CHARACTERS if self.player is None else ruler_of(self.player)
        chatbot = BY_CHARACTERS if self._chatbot is None else ruler_of(self._chatbot)
        said = "" if self.player is None else persona.text_of(habits.persona_tokens(self.player))
        replied = chatbot.text_of(habits.chatbot_tokens(plan.chatbot))
        self.asked = _paper(persona, self.player, said), _paper(chatbot, self._chatbot, replied)
        self.work, self.held, self.overflow = [NO_WORK, NO_WORK], [0.0, 0.0], ["", ""]
        self._setting = _setting(plan, pool, *self.asked)
        self._length = max(1, round(plan.turns * habits.held))

    async def talk(self) -> Conversation:
        """Hold them all; gives the one whose texts are nearest to the mean length."""
        held = []
        for persona in self._plan.personas:
            for paper in self.asked:
                paper.begin()
            held.append(await self._held(persona))
            for side, paper in enumerate(self.asked):
                self.work[side] += paper.take() * self._plan.config.repeats
                self.held[side] = max(self.held[side], paper.held)
        sizes = [sum(len(m.text) for m in c.messages) for c in held]
        mean = sum(sizes) / len(sizes)
        return held[min(range(len(held)), key=lambda i: abs(sizes[i] - mean))]

    async def _held(self, persona: Persona) -> Conversation:
        conversation = Conversation(persona.name, persona.name, 1, (), Ending.TURNS)
        while len(conversation.messages) < self._length and not self._setting.long_enough(conversation):
            turn = len(conversation.messages) + 1
            speaker = self._setting.speaker(turn)
            try:
                text = await self._said(speaker, persona, conversation.messages)
            except ContextOverflow as error:
                side = 0 if speaker is Speaker.PERSONA else 1
                self.overflow[side] = f"message {turn} of {self._plan.turns} does not fit: {error}"
                break
            conversation = replace(conversation, messages=(*conversation.messages, Message(speaker, text)))
        return conversation

    async def _said(self, speaker: Speaker, persona: Persona, history: Sequence[Message]) -> str:
        if speaker is Speaker.CHATBOT:
            seen = history if self._setting.first is Speaker.PERSONA else (STUB, *history)
            session = await self._setting.chatbot.open(Conversation("", "", 1), 0)
            return (await session.reply(seen, 0)).text
        if not history and persona.opening is not None:
            return persona.opening
        assert self._setting.simulator is not None, "a persona that says more than its opening is played by a model"
        return (await self._setting.simulator.speak(persona, history, 0)).text


def _paper(ruler: Ruler, player: Player | None, text: str) -> Paper:
    return Paper(ruler, 2**60 if player is None else player.profile.context, lambda request: text)


def _setting(plan: Plan, pool: int, persona: Paper, chatbot: Paper) -> Setting:
    """How conversations are held, with both sides on paper."""
    player = plan.chatbot if isinstance(plan.chatbot, Player) else None
    draw, full = (Draw(0, 1, 1), None) if player is None else (player.draw, player.when_full)
    talker = LocalChatbot(chatbot, draw, plan.system_prompt, *(() if full is None else (full,)))

    def engine_of(asked_for: Player) -> Engine:
        return persona

    return make_setting(plan, pool, engine_of, talker)


def _speakers(plan: Plan, pools: Sequence[_Pool], count: int) -> Iterator[Part]:
    each = count // len(pools)
    for pool in pools:
        if (player := pool.player) is not None:
            place = Place(TALK, SIMULATOR, player.profile.name)
            yield _part(place, player, each, pool.work[0], pool.held[0], pool.overflow[0])
    chatbot = plan.chatbot if isinstance(plan.chatbot, Player) else None
    name = plan.chatbot.profile.name if isinstance(plan.chatbot, Player) else plan.chatbot.title
    work = sum((pool.work[1] for pool in pools), NO_WORK)
    held, overflow = max(pool.held[1] for pool in pools), max(pool.overflow[1] for pool in pools)
    yield _part(Place(TALK, CHATBOT, name), chatbot, count, work, held, overflow)


def _part(place: Place, player: Player | None, count: int, work: Work, held: float, overflow: str = "") -> Part:
    return Part(place, place.model, player, count, work, work.requests, work.requests, held, overflow)


async def _judged(plan: Plan, seat: Seat, habits: Habits, ruler: Ruler, samples: Sequence[Conversation]) -> Part:
    """A seat's part: for each pool's conversations what a walk is expected to ask."""
    walks = [await _Bench(plan, seat, habits, ruler).walk(sample) for sample in samples]
    count = plan.count
    each = count / len(samples)
    return Part(
        place=Place(JUDGING, JUDGE, seat.judge),
        name=seat.name,
        player=seat.player,
        conversations=count,
        work=sum((walk.expected for walk in walks), NO_WORK) * each,
        least=sum(walk.least for walk in walks) * each,
        most=sum(walk.most for walk in walks) * each,
        held=max(walk.held for walk in walks),
        overflow=max(walk.overflow for walk in walks),
        verdicts=sum(walk.verdicts for walk in walks) * each,
        reasons=habits.reasoning_tokens(seat),
    )


@dataclass(frozen=True, slots=True)
class _Walk:
    """One conversation's judgement by one judge."""

    expected: Work
    least: float
    most: float
    held: float
    overflow: str
    verdicts: float


class _Bench:
    """One judge on paper, asked every question with every answer."""

    def __init__(self, plan: Plan, seat: Seat, habits: Habits, ruler: Ruler) -> None:
        self._rubric, self._share = plan.bundle.rubric, habits.shares(seat, plan.bundle.rubric)
        self._reasons = ruler.text_of(tokens) if (tokens := habits.reasoning_tokens(seat)) else ""
        self._paper = Paper(ruler, seat.player.profile.context, self._write)
        self._judge = make_judge(plan, seat, self._paper)
        self._answer = self._evidence = ""
        self._costs: dict[tuple[str, str], Work] = {}
        self._overflow = ""

    async def walk(self, sample: Conversation) -> _Walk:
        """What is asked about a conversation, over all the paths that a walk can take."""
        self._evidence = ", ".join(str(turn) for turn in range(1, min(2, len(sample.messages)) + 1))
        await self._ask_all(sample)
        reached = visits(self._rubric, self._share)
        expected = NO_WORK
        for question, option in self._answers():
            times = reached[question.id] * self._share(question, option)
            expected += self._costs[question.id, option.answer] * times
        least, most = (extreme(self._rubric, self._requests, pick) for pick in (min, max))
        return _Walk(expected, least, most, self._paper.held, self._overflow, sum(reached.values()))

    async def _ask_all(self, sample: Conversation) -> None:
        """The first question is asked of an empty cache, but for what another conversation left; the others behind."""
        questions = asked(self._rubric)
        await self._judge.ask(await self._judge.look(replace(sample, id="another"), questions), questions[0])
        self._paper.begin()
        shown, cache = await self._judge.look(sample, questions), self._paper.here()
        for question in questions:
            for option in question.options:
                self._paper.back(cache)
                await self._ask(shown, question, option)
            cache = self._paper.here()

    async def _ask(self, shown: Exhibit, question: Question, option: Option) -> None:
        self._answer = option.answer
        self._paper.take()
        verdict = await self._judge.ask(shown, question)
        self._costs[question.id, option.answer] = self._paper.take()
        if verdict.state is State.OVERFLOW:
            self._overflow = verdict.detail

    def _answers(self) -> Iterator[tuple[Question, Option]]:
        return ((question, option) for question in asked(self._rubric) for option in question.options)

    def _requests(self, question: Question, option: Option) -> float:
        return 0.0 if question.auto else self._costs[question.id, option.answer].requests

    def _write(self, request: Request) -> str:
        """Reasons where they are asked for, the turns behind an answer, or the answer."""
        if request.stop:
            return f"{self._reasons} {request.stop}"
        return self._evidence if request.messages[-1].content == EVIDENCE else self._answer


async def _checked(plan: Plan, ruler_of: RulerOf, samples: Sequence[Conversation]) -> Part:
    """The first judge's look at every conversation's persona."""
    player = plan.judges[0].player
    paper, personas = Paper(ruler_of(player), player.profile.context, lambda request: "3"), plan.personas
    held = 0.0
    for sample in samples:
        for persona in personas:
            paper.begin()
            await check_persona(paper, persona, exhibit(sample, plan.config.seed), plan.config.seed)
            held = max(held, paper.held)
    work = paper.take() * plan.config.repeats
    return _part(Place(CHECKING, JUDGE, plan.judges[0].judge), player, plan.count, work, held)
