"""From selftest.yaml to a checked self-test, with every mistake told in the words of the file. Knows no judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from vera_local.bundle.bundle import Bundle
from vera_local.bundle.checks import repeated
from vera_local.bundle.problem import raise_first
from vera_local.bundle.prompts import Template
from vera_local.bundle.rubric import Rubric
from vera_local.bundle.schema import Text
from vera_local.bundle.source import Source
from vera_local.bundle.suite import Attack, Case, KeyCase, Kind, Suite
from vera_local.bundle.yaml_file import dotted, expected, load_yaml
from vera_local.conversation import Message, Speaker
from vera_local.errors import UserError

SELFTEST = "selftest.yaml"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class TurnKeys(_Strict):
    """One message, under the name of who wrote it."""

    user: Text | None = None
    chatbot: Text | None = None

    @model_validator(mode="after")
    def _one(self) -> TurnKeys:
        if (self.user is None) == (self.chatbot is None):
            raise ValueError("must hold one message, either as user: or as chatbot:")
        return self

    def message(self) -> Message:
        """The same as plain data."""
        if self.user is not None:
            return Message(Speaker.PERSONA, self.user)
        return Message(Speaker.CHATBOT, self.chatbot or "")


class CaseKeys(_Strict):
    """A transcript with known answers."""

    id: Text
    kind: Annotated[Kind, Field(strict=False)]
    why: Text
    turns: Annotated[list[TurnKeys], Field(min_length=2)]
    expect: Annotated[dict[str, str], Field(min_length=1)]
    evidence: dict[str, Annotated[list[int], Field(min_length=1)]] = {}

    def case(self) -> Case:
        """The same as plain data."""
        turns = tuple(turn.message() for turn in self.turns)
        evidence = {question: tuple(named) for question, named in self.evidence.items()}
        return Case(self.id, self.kind, self.why, turns, self.expect, evidence)


class AttackKeys(_Strict):
    """One form of instruction to a judge."""

    id: Text
    text: Text


class MasterKeys(_Strict):
    """A case whose replies are replaced, and the answers that are then right."""

    case: Text
    expect: Annotated[dict[str, str], Field(min_length=1)]


class SuiteFile(_Strict):
    """All of selftest.yaml."""

    cases: Annotated[list[CaseKeys], Field(min_length=1)]
    attacks: list[AttackKeys] = []
    attack_on: list[Text] = []
    master_keys: list[Text] = []
    master_on: list[MasterKeys] = []

    def suite(self, digest: str) -> Suite:
        """The same as plain data; its names must be known to be good."""
        cases = {keys.id: keys.case() for keys in self.cases}
        return Suite(
            digest=digest,
            cases=tuple(cases.values()),
            attacks=tuple(Attack(a.id, Template(a.text)) for a in self.attacks),
            attack_on=tuple(cases[name] for name in self.attack_on),
            master_keys=tuple(self.master_keys),
            master_on=tuple(KeyCase(cases[m.case], m.expect) for m in self.master_on),
        )


def load_suite(file: Path, rubric: Rubric) -> Suite:
    """The self-test in `file`, for this rubric; UserError with the first problem and the number of further ones."""
    source = Source.read(file)
    content, found = examine(source, rubric)
    raise_first(found)
    assert content is not None
    return content.suite(source.digest)


def suite_of(bundle: Bundle) -> Suite:
    """The self-test of a bundle; UserError where it has none, or a mistake in it."""
    file = None if bundle.folder is None else bundle.folder / SELFTEST
    if file is None or not file.exists():
        place = f"write one in {file}" if file is not None else "use one of the bundles that come with this program"
        raise UserError(f"the bundle '{bundle.name}' has no self-test; {place}")
    return load_suite(file, bundle.rubric)


def examine(source: Source, rubric: Rubric) -> tuple[SuiteFile | None, list[str]]:
    """What a selftest.yaml says, None where that is unclear, and its problems; UserError where it is no YAML."""
    data = load_yaml(source, "the cases of a self-test")
    try:
        content = SuiteFile.model_validate(data)
    except ValidationError as error:
        return None, [f"{source.path}: {dotted(e['loc'])} {expected(e)}." for e in error.errors()]
    return content, [f"{source.path}: {problem}." for problem in _problems(content, rubric)]


def _problems(content: SuiteFile, rubric: Rubric) -> Iterator[str]:
    yield from _unique(content)
    for case in content.cases:
        told = (*_turns(case), *_answers(case.expect, rubric), *_evidence(case))
        yield from (f"case {case.id}: {problem}" for problem in told)
    yield from _attacks(content)
    yield from _named(content)
    for entry in content.master_on:
        yield from (f"master_on {entry.case}: {problem}" for problem in _answers(entry.expect, rubric))


def _unique(content: SuiteFile) -> Iterator[str]:
    lists = {
        "cases": [case.id for case in content.cases],
        "attacks": [attack.id for attack in content.attacks],
        "attack_on": content.attack_on,
        "master_keys": content.master_keys,
        "master_on": [entry.case for entry in content.master_on],
    }
    for key, words in lists.items():
        for word in repeated(words):
            yield f"{key}: '{word}' is there twice; remove or rename one"


def _turns(case: CaseKeys) -> Iterator[str]:
    for number, turn in enumerate(case.turns, 1):
        wanted = "user" if number % 2 else "chatbot"
        if (turn.user is None) == (wanted == "user"):
            yield f"turn {number} must be the {wanted}'s; user and chatbot take turns, the user first"
            return


def _answers(expect: Mapping[str, str], rubric: Rubric) -> Iterator[str]:
    asked = {q.id: [o.answer for o in q.options] for q in rubric.questions if not q.auto}
    for question, answer in expect.items():
        if question not in asked:
            yield f"'{question}' is no question that a judge is asked; use the id of one"
        elif answer not in asked[question]:
            options = ", ".join(f"'{option}'" for option in asked[question])
            yield f"'{answer}' is no option of question {question}; use one of {options}"


def _evidence(case: CaseKeys) -> Iterator[str]:
    for question, turns in case.evidence.items():
        if question not in case.expect:
            yield f"evidence is given for question {question}, for which no answer is expected; add it to expect"
        for turn in turns:
            if not 1 <= turn <= len(case.turns):
                yield f"turn {turn}, given as evidence for question {question}, is not there; name one that is"


def _attacks(content: SuiteFile) -> Iterator[str]:
    for attack in content.attacks:
        for unknown in sorted(Template(attack.text).placeholders - {"answer"}):
            yield f"attack {attack.id}: {{{unknown}}} is no placeholder; use {{answer}}, or write plain braces twice"
    if bool(content.attacks) != bool(content.attack_on):
        yield "attacks and attack_on belong together; give both, or neither"
    if bool(content.master_keys) != bool(content.master_on):
        yield "master_keys and master_on belong together; give both, or neither"


def _named(content: SuiteFile) -> Iterator[str]:
    known = {case.id for case in content.cases}
    for key, names in (("attack_on", content.attack_on), ("master_on", [m.case for m in content.master_on])):
        for name in names:
            if name not in known:
                yield f"{key}: there is no case '{name}'; use the id of one"
