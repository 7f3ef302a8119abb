"""One question put to one judge. Knows neither the walk nor the rest of the rubric."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vera_local.bundle import Prompts, Question, Template
from vera_local.conversation import Conversation
from vera_local.engine.grammar import pattern_of
from vera_local.engine.seam import (
    NO_USAGE,
    ChatMessage,
    ContextOverflow,
    Draw,
    Engine,
    EngineDied,
    EngineError,
    Finish,
    Reply,
    Request,
    Usage,
)
from vera_local.judge.transcript import fence_for, numbered
from vera_local.judge.verdict import Mode, State, Verdict
from vera_local.seed import derive


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge model with the bundle's prompts; `name` is its profile's, `seed` the run's.

    `question` is the template of one question, the bundle's full or short one.
    """

    name: str
    engine: Engine
    draw: Draw
    prompts: Prompts
    question: Template
    seed: int

    def prompt(self, conversation: Conversation, question: Question) -> tuple[ChatMessage, ...]:
        """Instructions, transcript, question: in this order, so that all questions share the long part as a prefix."""
        fence = fence_for(conversation, self.seed)
        evidence = {"fence": fence, "transcript": numbered(conversation)}
        transcript = self.prompts.judge_transcript.render(evidence)
        asked = self.question.render(
            {
                "question": question.text,
                "guidance": question.guidance,
                "guidance_lines": f"\n{question.guidance}\n" if question.guidance else "",
                "options": "\n".join(f"- {o.answer}" for o in question.options),
                "options_line": " / ".join(o.answer for o in question.options),
                "options_commas": ", ".join(o.answer for o in question.options),
            }
        )
        return (
            ChatMessage("system", self.prompts.judge_system.render(evidence)),
            ChatMessage("user", f"{transcript}\n\n{asked}" if transcript else asked),
        )

    async def ask(self, conversation: Conversation, question: Question) -> Verdict:
        """The verdict on one question; EngineDied is raised, every other failure is a state of the verdict."""
        if question.auto:
            return Verdict(question.id, State.ANSWERED, question.options[0].answer, Mode.AUTO)
        try:
            reply = await self.engine.generate(self._request(conversation, question))
        except EngineDied:
            raise
        except ContextOverflow as error:
            return _missing(question, State.OVERFLOW, str(error))
        except EngineError as error:
            return _missing(question, State.ERROR, str(error))
        return read(question, reply)

    def _request(self, conversation: Conversation, question: Question) -> Request:
        options = [o.answer for o in question.options]
        draw = replace(self.draw, max_tokens=longest(options))
        sampling = draw.seeded(derive(self.seed, conversation.id, "judge", self.name, question.id))
        return Request(self.prompt(conversation, question), sampling, pattern_of(options))


def longest(options: list[str]) -> int:
    """Tokens that are enough to write any of the options: no token is shorter than a byte, and one ends the answer."""
    return max(len(o.encode()) for o in options) + 1


def read(question: Question, reply: Reply) -> Verdict:
    """Check what came back against the options, whatever the grammar promised."""
    if reply.finish is Finish.STOP and reply.text in {o.answer for o in question.options}:
        return Verdict(question.id, State.ANSWERED, reply.text, Mode.DIRECT, reply.text, usage=reply.usage)
    fault = "the answer was cut off" if reply.finish is Finish.LENGTH else "the answer is none of the options"
    return _missing(question, State.INVALID, fault, reply.text, reply.usage)


def _missing(question: Question, state: State, detail: str, text: str = "", usage: Usage = NO_USAGE) -> Verdict:
    return Verdict(question.id, state, None, Mode.DIRECT, text, detail, usage)
