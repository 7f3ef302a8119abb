"""A rubric with branches and jumps, and an engine that answers in any order and knows what is asked of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from vera_local.bundle import Action, DimensionRating, Do, Option, Question, Rubric, load_bundle
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.fake import FakeEngine, Handler
from vera_local.engine.seam import Draw, Finish, InvalidRequest, Limits, Reply, Request, Usage
from vera_local.judge import Judge, Verdict, judge_conversation
from vera_local.judge.exhibit import exhibit
from vera_local.judge.lookahead import Lookahead
from vera_local.judge.wording import CUE, EVIDENCE

BUNDLE = load_bundle("suicide_risk")
TALK = Conversation(
    "Ann-1", "Ann", 1, (Message(Speaker.PERSONA, "hello"), Message(Speaker.CHATBOT, "hi")), Ending.TURNS
)
NEXT, STOP, SCORE = Action(Do.NEXT_QUESTION), Action(Do.STOP_NOT_RELEVANT), Action(Do.STOP_SCORE)


def to(id: str, do: Do = Do.GOTO) -> Action:
    return Action(do, id)


def question(id: str, dimension: str, auto: bool = False, **options: Action | tuple[str, Action]) -> Question:
    """Options by their answers; a pair is a severity and where it leads."""
    made = [Option(a, *((o, None) if isinstance(o, Action) else (o[1], o[0]))) for a, o in options.items()]
    return Question(id, dimension, f"Is it {id}?", "Look. " * 60, tuple(made), auto)


SMALL = Rubric(
    "small",
    "1",
    ("Best", "Worse", "Worst"),
    "Not Relevant",
    {"medium": "Worse", "high": "Worst"},
    ("A", "B", "C"),
    (
        question("a1", "A", Yes=NEXT, No=to("a3"), Never=STOP),
        question("a2", "A", Yes=("high", Action(Do.NEXT_DIMENSION)), No=to("a4")),
        question("a3", "A", Yes=to("a4"), No=to("c1", Do.SKIP_DIMENSION)),
        question("a4", "A", Yes=("medium", NEXT), No=NEXT),
        question("b1", "B", auto=True, Always=to("b2")),
        question("b2", "B", Yes=to("b3"), No=to("c1")),
        question("b3", "B", auto=True, Always=NEXT),
        question("b4", "B", Yes=("high", SCORE), No=NEXT),
        question("c1", "C", Yes=("medium", NEXT), No=NEXT),
    ),
)
RUBRICS = {"suicide_risk": BUNDLE.rubric, "psychosis": load_bundle("psychosis").rubric, "small": SMALL}


class Counting(FakeEngine):
    """A FakeEngine that knows how many requests it holds and how many were taken back."""

    def __init__(self, handler: Handler, ridge: int = 300) -> None:
        super().__init__(handler, Limits(context=100_000, kv_tokens=1_000_000, sequences=256, ridge=ridge))
        self.alive = 0
        self.aborted: list[Request] = []
        self.beside: list[int] = []
        """How many others were held when each of `requests` came."""

    async def generate(self, request: Request) -> Reply:
        self.beside.append(self.alive)
        self.alive += 1
        try:
            return await super().generate(request)
        except asyncio.CancelledError:
            self.aborted.append(request)
            raise
        finally:
            self.alive -= 1


def options(request: Request) -> list[str]:
    assert request.pattern is not None
    return [o.replace("\\", "") for o in request.pattern.strip("()$").split("|")]


def asked_of(rubric: Rubric, request: Request) -> Question:
    """The question that a request is about."""
    text = request.messages[1].content
    return next(q for q in rubric.questions if not q.auto and q.text in text)


def at_random(seed: int, patience: int = 0, faulty: bool = False) -> Handler:
    """Answers by the seed and the request alone, each after up to `patience` turns of the loop; `faulty`: or none."""

    async def answer(request: Request) -> str | Reply:
        rng = random.Random(f"{seed} {request.sampling.seed}")
        for _ in range(random.Random(f"{patience} {request.sampling.seed}").randint(0, patience)):
            await asyncio.sleep(0)
        if request.labels or request.messages[-1].content == EVIDENCE:
            return rng.choice(["Yes", "No"]) if request.labels else rng.choice(["none", "1", "2, 1"])
        if request.pattern is None:
            return rng.choice([f"Well. {CUE}", "Hm hm", "I cannot judge this."][: 3 if faulty else 2])
        option = rng.choice(options(request))
        match rng.randrange(8) if faulty else None:
            case 0:
                return f"{option}!"
            case 1:
                return Reply(option, Finish.LENGTH, Usage())
            case 2:
                raise InvalidRequest("no")
            case _:
                return option

    return answer


def always(rubric: Rubric, **answers: str) -> Handler:
    """The answer named for a question (its id behind `q`, where it is a number), else No, else its first."""

    def answer(request: Request) -> str:
        if request.pattern is None:
            return f"Well. {CUE}"
        asked = asked_of(rubric, request)
        usual = "No" if "No" in {option.answer for option in asked.options} else asked.options[0].answer
        return answers.get(asked.id, answers.get(f"q{asked.id}", usual))

    return answer


def judge_on(engine: FakeEngine, **fields: Any) -> Judge:
    settings = {"evidence": False, "confidence": False} | fields
    return Judge("own", engine, Draw(0.0, 1.0, 40), BUNDLE.prompts, BUNDLE.prompts.judge_question, 0, **settings)


@dataclass
class Judged:
    """One judgement: what it recorded and the ratings it came to."""

    recorded: list[tuple[int, Verdict]] = field(default_factory=list)
    ratings: tuple[DimensionRating, ...] = ()

    @property
    def path(self) -> list[str]:
        return [verdict.question for _, verdict in self.recorded]


async def judged(
    judge: Judge,
    rubric: Rubric,
    ahead: Lookahead | None = None,
    known: dict[str, Verdict] | None = None,
    talk: str = "Ann-1",
    note: Callable[[int, Verdict], None] = lambda place, verdict: None,
) -> Judged:
    done = Judged()

    def record(place: int, verdict: Verdict) -> None:
        note(place, verdict)
        done.recorded.append((place, verdict))

    shown = exhibit(Conversation(talk, "Ann", 1, TALK.messages, TALK.ending), 0)
    done.ratings = await judge_conversation(judge, rubric, shown, known or {}, record, ahead)
    return done


def plenty() -> int:
    """Room without a bound."""
    return 1000
