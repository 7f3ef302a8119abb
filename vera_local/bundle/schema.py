"""The keys of rubric.yaml and their types. Knows no file and does not judge whether the flow makes sense."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, StringConstraints, model_validator

from vera_local.bundle.rubric import Action, Do, Option, Question, Rubric
from vera_local.plain import plain

Text = Annotated[str, StringConstraints(pattern=r"\S")]
Name = Annotated[Text, AfterValidator(plain)]
"""What stands in tables and headings."""

_PLAIN = {
    "next question": Do.NEXT_QUESTION,
    "next dimension": Do.NEXT_DIMENSION,
    "stop and score": Do.STOP_SCORE,
    "stop as not relevant": Do.STOP_NOT_RELEVANT,
}
_TO_QUESTION = {"go to ": Do.GOTO, "skip dimension to ": Do.SKIP_DIMENSION}
_STEPS = ", ".join([*_PLAIN, *(f"{words}ID" for words in _TO_QUESTION)])


def parse_then(then: object) -> Action:
    """The action that the words of a `then` stand for; ValueError for other words."""
    if isinstance(then, str):
        if then in _PLAIN:
            return Action(_PLAIN[then])
        for words, do in _TO_QUESTION.items():
            if then.startswith(words) and (target := then.removeprefix(words).strip()):
                return Action(do, target)
    raise ValueError(f"must be one of: {_STEPS}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class OptionKeys(_Strict):
    """An option of a question."""

    answer: Text
    severity: str | None = None
    then: Annotated[Action, PlainValidator(parse_then)] = Action(Do.NEXT_QUESTION)

    def option(self) -> Option:
        """The same as plain data."""
        return Option(self.answer, self.then, self.severity)


class QuestionKeys(_Strict):
    """A question with its options, or with a severity that stands for the options Yes and No.

    One that a judge is asked has guidance, so that no prompt ends up with a heading and nothing under it.
    """

    id: Text
    text: Text
    guidance: str = ""
    auto: bool = False
    severity: str | None = None
    options: list[OptionKeys] | None = None

    @model_validator(mode="after")
    def _either(self) -> QuestionKeys:
        if self.options is None and self.severity is None:
            raise ValueError("has no options; add options, or a severity that a plain Yes raises")
        if self.options is not None and self.severity is not None:
            raise ValueError("has both options and a severity; move the severity to the option that raises it")
        return self

    @model_validator(mode="after")
    def _guided(self) -> QuestionKeys:
        if not self.auto and not self.guidance.strip():
            raise ValueError("has no guidance; say in it which answer to give when")
        return self

    def question(self, dimension: str) -> Question:
        """The same as plain data, with its options written out."""
        return Question(self.id, dimension, self.text, self.guidance, self._options(), self.auto)

    def _options(self) -> tuple[Option, ...]:
        if self.options is not None:
            return tuple(o.option() for o in self.options)
        yes = Option("Yes", Action(Do.NEXT_DIMENSION), self.severity)
        return yes, Option("No", Action(Do.NEXT_QUESTION))


class DimensionKeys(_Strict):
    """A dimension and its questions, in the order asked."""

    name: Text
    questions: Annotated[list[QuestionKeys], Field(min_length=1)]


class ControlsSpec(_Strict):
    """Which personas are controls: those with `value` in `column`."""

    column: Text
    value: Text


class PersonaSpec(_Strict):
    """Which file holds the personas and what its columns mean; `groups` in order.

    `opening` is the column with a persona's first message, where that is scripted; `language` the one with the
    language that it writes, by name or code; `seed` the one with words that show how it sounds and that no message may
    repeat.
    """

    file: Text
    name: Text
    group: Text
    groups: Annotated[list[Name], Field(min_length=1)]
    columns: Annotated[list[Text], Field(min_length=1)]
    opening: Text | None = None
    language: Text | None = None
    seed: Text | None = None
    controls: ControlsSpec | None = None


class PromptFiles(_Strict):
    """The file of each prompt template; those for the simulator are left out where no model plays a persona."""

    simulator: Text | None = None
    simulator_short: Text | None = None
    simulator_examples: Text | None = None
    simulator_notes: Text | None = None
    opening: Text | None = None
    reminder: Text | None = None
    chatbot: Text | None = None
    judge_system: Text
    judge_transcript: Text
    judge_question: Text
    judge_question_short: Text


class SamplingKeys(_Strict):
    """How a role draws its tokens with this bundle."""

    temperature: Annotated[float, Field(ge=0, le=2)]


class RoleSampling(_Strict):
    """The roles for which the bundle says how they draw, unless a run's own config does."""

    simulator: SamplingKeys | None = None
    chatbot: SamplingKeys | None = None
    judge: SamplingKeys | None = None

    def temperatures(self) -> dict[str, float]:
        """Role -> temperature."""
        roles = {"simulator": self.simulator, "chatbot": self.chatbot, "judge": self.judge}
        return {role: keys.temperature for role, keys in roles.items() if keys is not None}


class RubricFile(_Strict):
    """All of rubric.yaml; `turns` counts messages of both sides; from `earliest_end` on a persona may leave.

    `not_relevant` is left out where every dimension is rated in every conversation.
    """

    name: Name
    version: Name
    title: Name
    notice: Text
    ratings: Annotated[list[Text], Field(min_length=2)]
    not_relevant: Text | None = None
    severities: dict[str, str]
    turns: Annotated[int, Field(ge=2)]
    end_signal: Text | None = None
    earliest_end: Annotated[int, Field(ge=1)] | None = None
    personas: PersonaSpec
    prompts: PromptFiles
    sampling: RoleSampling = RoleSampling()
    dimensions: Annotated[list[DimensionKeys], Field(min_length=1)]

    @property
    def scripted(self) -> bool:
        """Whether every message of a persona is in the table, so that no model plays one."""
        return self.personas.opening is not None and self.turns == 2

    def rubric(self) -> Rubric:
        """The flow of questions as plain data."""
        return Rubric(
            name=self.name,
            version=self.version,
            ratings=tuple(self.ratings),
            not_relevant=self.not_relevant,
            severities=dict(self.severities),
            dimensions=tuple(d.name for d in self.dimensions),
            questions=tuple(q.question(d.name) for d in self.dimensions for q in d.questions),
        )
