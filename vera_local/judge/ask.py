"""One question put to one judge. Knows neither the walk nor the rest of the rubric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vera_local.bundle import Prompts, Question, Template
from vera_local.conversation import Conversation
from vera_local.engine.grammar import pattern_of
from vera_local.engine.options import option_probabilities
from vera_local.engine.seam import (
    NO_USAGE,
    ChatMessage,
    ContextOverflow,
    Draw,
    Engine,
    EngineDied,
    EngineError,
    Finish,
    Refused,
    Reply,
    Request,
    Usage,
)
from vera_local.engine.thinking import Thinking
from vera_local.judge.evidence import evidence_pattern, longest_evidence, read_evidence, rests_on_turns
from vera_local.judge.exhibit import Exhibit, exhibit
from vera_local.judge.neutral import neutralise
from vera_local.judge.refusal import declines
from vera_local.judge.verdict import Confidence, Mode, State, Verdict
from vera_local.judge.wording import CUE, DIRECT, EVIDENCE, REASON
from vera_local.seed import derive
from vera_local.together import together


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge model with the bundle's prompts; `name` is what its verdicts go by, `seed` the run's.

    `question` is the template of one question, the bundle's full or short one. `draw.max_tokens` bounds the reasoning
    of the modes that have one; `thinking` says how mode THINK's ends. `evidence` and `confidence`: whether they are
    asked for. `window`: whether a transcript that is too long is shown without its middle, instead of not at all.
    """

    name: str
    engine: Engine
    draw: Draw
    prompts: Prompts
    question: Template
    seed: int
    mode: Mode = Mode.DIRECT
    thinking: Thinking | None = None
    evidence: bool = True
    confidence: bool = True
    window: bool = False

    def __post_init__(self) -> None:
        if self.mode is Mode.THINK and self.thinking is None:
            raise ValueError("mode think needs to know how the model's thinking ends")

    async def look(self, conversation: Conversation, questions: Sequence[Question] = ()) -> Exhibit:
        """What this judge is shown of a conversation, for all its questions; with `window` such that they fit.

        Where its host counts no tokens nobody knows what fits: then it is shown the whole.
        """
        whole = exhibit(conversation, self.seed, self.engine.markers)
        if not self.window or not questions:
            return whole
        try:
            return await self._as_much_as_fits(conversation, whole, questions)
        except EngineDied:
            raise
        except EngineError:
            return whole

    async def _as_much_as_fits(
        self, conversation: Conversation, whole: Exhibit, questions: Sequence[Question]
    ) -> Exhibit:
        """The whole where it fits, or where not even two turns do."""
        if await self._fits(whole, questions):
            return whole
        shown, fewest, most = whole, 2, len(whole.turns) - 1
        while fewest <= most:
            keep = (fewest + most) // 2
            part = exhibit(conversation, self.seed, self.engine.markers, keep)
            if await self._fits(part, questions):
                shown, fewest = part, keep + 1
            else:
                most = keep - 1
        return shown

    async def length(self, shown: Exhibit, questions: Sequence[Question]) -> int:
        """Tokens that the longest of the questions takes in all, with the transcript, the reasoning and the answer."""
        longest_one = max(questions, key=_written)
        prompt = await self.engine.count_tokens(self.prompt(shown, longest_one), thinking=self.mode is Mode.THINK)
        answer = max(longest([o.answer for o in q.options]) for q in questions)
        reasoning = 0 if self.mode is Mode.DIRECT else self.draw.max_tokens
        return prompt + reasoning + answer + (len(EVIDENCE) // 2 if self.evidence else 0)

    async def kept(self, shown: Exhibit, questions: Sequence[Question]) -> int:
        """What an exhibit keeps in the engine's KV cache, in tokens of whole blocks: its longest question with all
        that is written behind it. 0 where the engine does not tell its cache, since nothing is then bounded by it."""
        limits = self.engine.limits
        return 0 if limits.kv_tokens is None else limits.kept(await self.length(shown, questions))

    async def _fits(self, shown: Exhibit, questions: Sequence[Question]) -> bool:
        return await self.length(shown, questions) <= self.engine.limits.context

    def prompt(self, shown: Exhibit, question: Question) -> tuple[ChatMessage, ...]:
        """Instructions, transcript, question: in this order, so that all questions share the long part as a prefix."""
        evidence = {"fence": shown.fence, "transcript": shown.text}
        transcript, asked = self.prompts.judge_transcript.render(evidence), self.asked(question)
        return (
            ChatMessage("system", self.prompts.judge_system.render(evidence)),
            ChatMessage("user", f"{transcript}\n\n{asked}" if transcript else asked),
        )

    def asked(self, question: Question) -> str:
        """The part of the prompt that is the question's own, behind the transcript."""
        asked = self.question.render(
            {
                "question": question.text,
                "guidance": question.guidance,
                "guidance_lines": f"\n{question.guidance}\n" if question.guidance else "",
                "options": "\n".join(f"- {o.answer}" for o in question.options),
                "options_line": " / ".join(o.answer for o in question.options),
                "options_commas": ", ".join(o.answer for o in question.options),
                "reply": REASON if self.mode is Mode.REASON else DIRECT,
            }
        )
        if self.mode is Mode.REASON and "reply" not in self.question.placeholders:
            return f"{asked}\n\n{REASON}"
        return asked

    async def ask(self, shown: Exhibit, question: Question) -> Verdict:
        """The verdict on one question; EngineDied is raised, every other failure is a state of the verdict."""
        if question.auto:
            return Verdict(question.id, State.ANSWERED, question.options[0].answer, Mode.AUTO)
        return await _Asking(self, shown, question, self.prompt(shown, question)).verdict()


@dataclass(slots=True)
class _Asking:
    """One question on its way to a verdict: the requests it takes and what they cost."""

    judge: Judge
    shown: Exhibit
    question: Question
    messages: tuple[ChatMessage, ...]
    usage: Usage = NO_USAGE
    rationale: str = ""

    async def verdict(self) -> Verdict:
        try:
            return self._told(await self._answered(await self._reasoned()))
        except EngineDied:
            raise
        except _Unfinished as error:
            return self._missing(error.state, str(error))
        except EngineError as error:
            return self._missing(_state_of(error), str(error))

    async def _answered(self, begun: tuple[int, ...]) -> Verdict:
        """The answer behind `begun` and its evidence, while confidence is read: neither depends on the other.

        A missing answer ends the reading, which then counts neither for the verdict nor in its usage.
        """
        async with together() as group:
            reading = group.create_task(self._confidence(begun))
            answered = await self._located(begun)
            if answered.answer is None:
                reading.cancel()
        if answered.answer is None:
            return answered
        confidence, usage = reading.result()
        self.usage += usage
        return replace(answered, confidence=confidence)

    async def _located(self, begun: tuple[int, ...]) -> Verdict:
        """The answer, and the turns that it rests on where it has to name them."""
        reply = await self._generate(self._request(begun, pattern_of(self._options), longest(self._options)))
        answered = read(self.question, reply)
        if answered.answer is None or not self.judge.evidence or not rests_on_turns(self.question, answered.answer):
            return answered
        return replace(answered, evidence=await self._evidence(answered.answer))

    @property
    def _options(self) -> list[str]:
        return [o.answer for o in self.question.options]

    async def _reasoned(self) -> tuple[int, ...]:
        """What stands before the answer: nothing, the reasons, or the model's own thinking."""
        match self.judge.mode:
            case Mode.REASON:
                return await self._reasons()
            case Mode.THINK:
                return await self._thought()
            case _:
                return ()

    async def _reasons(self) -> tuple[int, ...]:
        reply = await self._generate(replace(self._request((), None, self.judge.draw.max_tokens, "reason"), stop=CUE))
        self.rationale = reply.text.strip()
        if declines(self.rationale):
            raise _Unfinished(State.REFUSED, "the judge declined to judge")
        return (*reply.tokens, *await self.judge.engine.tokens(f"\n\n{CUE}\n"))

    async def _thought(self) -> tuple[int, ...]:
        thinking = self.judge.thinking
        assert thinking is not None
        budget = self.judge.draw.max_tokens
        reply = await self._generate(replace(self._request((), None, budget, "think"), stop=thinking.end))
        self.rationale = reply.text.strip()
        if reply.finish is not Finish.MARK:
            spent = f"within {budget} tokens" if reply.finish is Finish.LENGTH else "before the model stopped"
            raise _Unfinished(State.INVALID, f"the thinking did not end {spent}")
        return (*reply.tokens, *await self.judge.engine.tokens(f"{thinking.end}{thinking.bridge}"))

    async def _confidence(self, begun: tuple[int, ...]) -> tuple[Confidence | None, Usage]:
        """None where it is not asked for, or the host of the model offers no such reading or fails at it: the answer
        stands without."""
        if not self.judge.confidence:
            return None, NO_USAGE
        try:
            request = self._request(begun, None, 1, "confidence")
            options, usage = await option_probabilities(self.judge.engine, request, self._options)
        except EngineDied:
            raise
        except EngineError:
            return None, NO_USAGE
        return Confidence(options), usage

    async def _evidence(self, answer: str) -> tuple[int, ...] | None:
        """None where there was no room to name turns, or what came back names none that exist."""
        turns = self.shown.turns
        # What a judge wrote itself can quote what it was shown, or spell a control token in parts.
        reasons = neutralise(self.rationale, self.judge.engine.markers)
        told = f"{reasons}\n\n{CUE}\n{answer}" if self.judge.mode is Mode.REASON else answer
        messages = (*self.messages, ChatMessage("assistant", told), ChatMessage("user", EVIDENCE))
        request = self._request((), evidence_pattern(turns), longest_evidence(turns), "evidence")
        try:
            reply = await self._generate(replace(request, messages=messages, thinking=False))
        except EngineDied:
            raise
        except EngineError:
            return None
        return read_evidence(reply.text, turns) if reply.finish is Finish.STOP else None

    def _request(self, begun: tuple[int, ...], pattern: str | None, tokens: int, purpose: str = "") -> Request:
        judge = self.judge
        place = (self.shown.conversation, "judge", judge.name, self.question.id, *([purpose] if purpose else []))
        sampling = replace(judge.draw, max_tokens=tokens).seeded(derive(judge.seed, *place))
        return Request(self.messages, sampling, pattern, begun=begun, thinking=judge.mode is Mode.THINK)

    async def _generate(self, request: Request) -> Reply:
        reply = await self.judge.engine.generate(request)
        self.usage += reply.usage
        return reply

    def _told(self, verdict: Verdict) -> Verdict:
        return replace(
            verdict,
            mode=self.judge.mode,
            usage=self.usage,
            rationale=self.rationale,
            left_out=self.shown.left_out,
        )

    def _missing(self, state: State, detail: str) -> Verdict:
        return self._told(Verdict(self.question.id, state, None, self.judge.mode, detail=detail))


class _Unfinished(Exception):
    """The reasoning gave nothing that an answer could be written behind."""

    def __init__(self, state: State, detail: str) -> None:
        super().__init__(detail)
        self.state = state


def _state_of(error: EngineError) -> State:
    match error:
        case ContextOverflow():
            return State.OVERFLOW
        case Refused():
            return State.REFUSED
        case _:
            return State.ERROR


def _written(question: Question) -> int:
    return sum(map(len, (question.text, question.guidance, *(o.answer for o in question.options))))


def longest(options: Sequence[str]) -> int:
    """Tokens that are enough to write any of the options: no token is shorter than a byte, and one ends the answer."""
    return max(len(o.encode()) for o in options) + 1


def read(question: Question, reply: Reply) -> Verdict:
    """Check what came back against the options, whatever the grammar promised."""
    if reply.finish is Finish.STOP and reply.text in {o.answer for o in question.options}:
        return Verdict(question.id, State.ANSWERED, reply.text, Mode.DIRECT, reply.text)
    fault = "the answer was cut off" if reply.finish is Finish.LENGTH else "the answer is none of the options"
    return Verdict(question.id, State.INVALID, None, Mode.DIRECT, reply.text, fault)
