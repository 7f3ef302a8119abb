"""From the rows of rubric.tsv to a rubric. Knows no other file.

A row with a Question ID begins a question; rows without one below it add answers to it. A question without answers has
Yes, which leads to the next dimension, and No. A severity counts on the answer Yes alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from vera_local.bundle.checks import discards, problems
from vera_local.bundle.graph import Graph
from vera_local.bundle.problem import Findings
from vera_local.bundle.rubric import Action, Do, Option, Question, Rubric
from vera_local.bundle.upstream.table import Row, Table

COLUMNS = ("Question ID", "Dimension", "Severity", "Question", "Examples", "Answer", "GOTO")
RATINGS = ("Best Practice", "Suboptimal but Low Potential for Harm", "High Potential for Harm")
NOT_RELEVANT = "Not Relevant"
SEVERITIES = dict(zip(("medium", "high"), RATINGS[1:], strict=True))

_COLOURS = {"yellow": "medium", "red": "high"}
_SKIP = "NOT_RELEVANT>>"
_ASSIGN_END = "ASSIGN_END"


@dataclass(frozen=True)
class Rules:
    """How versions differ: `legacy` END discards the findings of a finished rubric, as before 2.0; `strict` checks what
    2.0 checks when it loads a rubric."""

    legacy: bool
    strict: bool


@dataclass(frozen=True)
class _Entry:
    """A question's row and its answers, each with the row it stands in."""

    row: Row
    answers: list[Row]


def read(table: Table, name: str, version: str, rules: Rules, findings: Findings) -> Rubric | None:
    """The rubric in `table`, sound where `findings` hold no problem; None where there is none at all."""
    if missing := [column for column in COLUMNS if column not in table.columns]:
        findings.problem(table.path, f"line 1: there is no column '{missing[0]}'; put the published file there")
        return None
    entries = _entries(table, findings)
    if not entries:
        findings.problem(table.path, "it holds no question; put the published file there")
        return None
    questions = _Reader(table, rules, findings).questions(entries)
    dimensions = tuple(dict.fromkeys(q.dimension for q in questions))
    rubric = Rubric(name, version, RATINGS, NOT_RELEVANT, dict(SEVERITIES), dimensions, questions)
    _check(table, rubric, entries, rules, findings)
    return rubric


def clean_id(text: str) -> str:
    """A question's id; a spreadsheet may have written the number 3 as 3.0."""
    return str(int(text.split(".")[0])) if re.fullmatch(r"[0-9]{1,9}(\.0*)?", text) else text


def _entries(table: Table, findings: Findings) -> list[_Entry]:
    entries: list[_Entry] = []
    for row in table.rows:
        if row["Question ID"]:
            entries.append(_Entry(row, []))
        elif row["Question"] or (row["Answer"] and not entries):
            findings.problem(table.path, f"line {row.line}: it has no Question ID; add it")
            continue
        if row["Answer"]:
            entries[-1].answers.append(row)
        elif row["GOTO"]:
            findings.warn(table.path, f"line {row.line}: a GOTO without an Answer has no effect; add the Answer")
    return entries


@dataclass(frozen=True)
class _Reader:
    table: Table
    rules: Rules
    findings: Findings

    def questions(self, entries: list[_Entry]) -> tuple[Question, ...]:
        dimensions = self._dimensions(entries)
        last = len(entries) - 1
        return tuple(
            self._question(entry, dimensions[i], ends=i == last, late=dimensions[i] == dimensions[-1])
            for i, entry in enumerate(entries)
        )

    def _dimensions(self, entries: list[_Entry]) -> list[str]:
        """The dimension of each question; a blank one is that of the question above."""
        found: list[str] = []
        for entry in entries:
            name = entry.row["Dimension"]
            if not name:
                self._blank_dimension(entry.row, above=found[-1] if found else "")
            found.append(name or (found[-1] if found else "?"))
        return found

    def _blank_dimension(self, row: Row, above: str) -> None:
        text = f"line {row.line}: question {row['Question ID']} has no Dimension"
        if self.rules.strict or not above:
            self.findings.problem(self.table.path, f"{text}; add it")
        else:
            self.findings.warn(self.table.path, f"{text} and is taken to belong to '{above}'; add it")

    def _question(self, entry: _Entry, dimension: str, *, ends: bool, late: bool) -> Question:
        row, severity = entry.row, self._severity(entry.row)
        if not row["Question"]:
            self._problem(row, "it has no text in column 'Question'; add it")
        options = [self._option(row, answer, severity, ends=ends, late=late) for answer in entry.answers]
        if options and severity and not any(_is_yes(o.answer) for o in options):
            self._warn(row, f"its severity '{row['Severity']}' has no effect without an answer Yes; add one")
        auto = row["Auto Answer"].casefold() == "true" or len(options) == 1
        options = options or _yes_no(severity)
        return Question(clean_id(row["Question ID"]), dimension, row["Question"], row["Examples"], tuple(options), auto)

    def _option(self, row: Row, answer: Row, severity: str | None, *, ends: bool, late: bool) -> Option:
        action = self._action(answer["GOTO"], ends=ends)
        option = Option(answer["Answer"], action, severity if _is_yes(answer["Answer"]) else None)
        if answer["GOTO"] == _ASSIGN_END and not _is_yes(option.answer):
            self._problem(row, f"it leads the answer '{option.answer}' to {_ASSIGN_END}, which Yes alone may do")
        if option.severity and discards(action, last=late):
            self._warn(row, f"its severity has no effect, as Yes leads to {answer['GOTO']}; remove one of them")
            return replace(option, severity=None)
        return option

    def _action(self, goto: str, *, ends: bool) -> Action:
        if goto == "END":
            fixed = Do.STOP_SCORE if ends else Do.STOP_NOT_RELEVANT
            return Action(Do.STOP_DISCARD if self.rules.legacy else fixed)
        if goto == _ASSIGN_END:
            return Action(Do.STOP_SCORE)
        if goto.startswith(_SKIP):
            return Action(Do.SKIP_DIMENSION, clean_id(goto.removeprefix(_SKIP).strip()))
        return Action(Do.GOTO, clean_id(goto)) if goto else Action(Do.NEXT_QUESTION)

    def _severity(self, row: Row) -> str | None:
        word = row["Severity"].casefold()
        for known in ("high", "medium"):
            if known in word:
                return known
        if word and word not in _COLOURS:
            self._warn(row, f"the Severity '{row['Severity']}' is unknown and has no effect; write Red or Yellow")
        return _COLOURS.get(word)

    def _problem(self, row: Row, text: str) -> None:
        self.findings.problem(self.table.path, f"line {row.line}: question {row['Question ID']}: {text}")

    def _warn(self, row: Row, text: str) -> None:
        self.findings.warn(self.table.path, f"line {row.line}: question {row['Question ID']}: {text}")


def _is_yes(answer: str) -> bool:
    return answer.casefold() == "yes"


def _yes_no(severity: str | None) -> list[Option]:
    return [Option("Yes", Action(Do.NEXT_DIMENSION), severity), Option("No", Action(Do.NEXT_QUESTION))]


def _check(table: Table, rubric: Rubric, entries: list[_Entry], rules: Rules, findings: Findings) -> None:
    lines = {f"question {clean_id(e.row['Question ID'])}": e.row.line for e in entries}
    unsound = problems(rubric)
    for problem in unsound:
        line = lines.get(problem.split(":")[0])
        findings.problem(table.path, f"line {line}: {problem}" if line else problem)
    for yellow, red in [] if unsound else _late_reds(rubric):
        text = f"question {red}: a Red question is asked after the Yellow question {yellow}; put it first"
        tell = findings.problem if rules.strict else findings.warn
        tell(table.path, f"line {lines[f'question {red}']}: {text}")


def _late_reds(rubric: Rubric) -> list[tuple[str, str]]:
    """Pairs of a Yellow question and a Red one that some path asks after it in the same dimension."""
    raised = {q.id: {o.severity for o in q.options} for q in rubric.questions}
    pairs = []
    for question in rubric.questions:
        if "medium" in raised[question.id]:
            outside = {q.id for q in rubric.questions if q.dimension != question.dimension}
            after = Graph.of(rubric).flood(question.id, outside) - {question.id}
            pairs += [(question.id, q.id) for q in rubric.questions if q.id in after and "high" in raised[q.id]]
    return pairs
