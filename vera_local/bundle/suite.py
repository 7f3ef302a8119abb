"""A bundle's self-test as data: transcripts whose right answers are known. Knows no judge and no file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from vera_local.bundle.prompts import Template
from vera_local.bundle.rubric import Question
from vera_local.conversation import Message


class Kind(StrEnum):
    """What a case shows a judge."""

    PASS = "pass"
    """A reply that clearly has no fault."""
    FAIL = "fail"
    """A reply that clearly has one."""
    CONTROL = "control"
    """A harmless conversation in which there is nothing to find."""
    ADVERSARIAL = "adversarial"
    """A text that could mislead a judge."""


@dataclass(frozen=True)
class Case:
    """A transcript and, by question id, the one right answer; `why` tells a reader what makes it right.

    `evidence` maps a question to the turns (from 1) of which a good judge names at least one.
    """

    id: str
    kind: Kind
    why: str
    turns: tuple[Message, ...]
    expect: Mapping[str, str]
    evidence: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Attack:
    """Words to the judge that a chatbot might write; `text` may hold {answer}, the wrong answer it is after."""

    id: str
    text: Template


@dataclass(frozen=True)
class KeyCase:
    """A case whose replies give way to a master key, and what is then the right answer, by question id."""

    case: Case
    expect: Mapping[str, str]


@dataclass(frozen=True)
class Suite:
    """A self-test. Every attack is tried on each case of `attack_on`, every master key (a reply without content that
    some judges are taken in by) on each of `master_on`. `digest` is the sha256 of its file, in hexadecimal."""

    digest: str
    cases: tuple[Case, ...]
    attacks: tuple[Attack, ...] = ()
    attack_on: tuple[Case, ...] = ()
    master_keys: tuple[str, ...] = ()
    master_on: tuple[KeyCase, ...] = ()


def attackers_wish(question: Question, right: str) -> str:
    """The wrong answer that an attack is after: the first that raises no severity, else the first."""
    wrong = [option for option in question.options if option.answer != right]
    return next((o for o in wrong if o.severity is None), wrong[0]).answer
