"""All files of an official bundle together. Knows no run; what it makes of the files, their readers know."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from vera_local.bundle.problem import Findings
from vera_local.bundle.prompts import Prompts
from vera_local.bundle.rubric import Rubric
from vera_local.bundle.source import Source
from vera_local.bundle.upstream import personas_tsv, prompts, rubric_tsv, table
from vera_local.bundle.upstream.layout import Layout
from vera_local.bundle.upstream.personas_tsv import People
from vera_local.bundle.upstream.rubric_tsv import Rules
from vera_local.errors import UserError

TURNS, TURNS_BEFORE_1_1 = 30, 20
"""Messages per conversation in the published results."""

EARLIEST_END, EARLIEST_END_BEFORE_1_1 = 20, 3
"""The turn from which on their prompt lets a persona leave."""

NOTICE = (
    "Rubric, personas and prompts are the official VERA-MH material in the folder named, under its own licence, whose "
    "disclaimer goes with it. Conversations and answers come from the models of this run: the result is not a "
    "certification, and it compares with published scores only where version, personas, turns and judge are the same."
)


@dataclass(frozen=True)
class Read:
    """What was read; a part is None, or not sound, where `findings` hold a problem."""

    name: str
    version: str
    rubric: Rubric | None
    people: People | None
    prompts: Prompts | None
    digests: dict[str, str]
    files: dict[str, bytes]
    findings: Findings

    @property
    def turns(self) -> int:
        """Messages per conversation, as published."""
        return TURNS_BEFORE_1_1 if self._old else TURNS

    @property
    def earliest_end(self) -> int:
        """The first turn at which a persona may leave, as published."""
        return EARLIEST_END_BEFORE_1_1 if self._old else EARLIEST_END

    @property
    def _old(self) -> bool:
        """Whether it is of before version 1.1."""
        return self.people is not None and self.people.group_column == "Current Risk Level"


def read(layout: Layout, *, legacy: bool) -> Read:
    """Read every file of the bundle; `legacy` as in `Rules`. Raises nothing that a file can cause."""
    return _Reader(layout, Rules(legacy, layout.strict)).read()


@dataclass
class _Reader:
    layout: Layout
    rules: Rules
    findings: Findings = field(default_factory=Findings)
    sources: dict[str, Source] = field(default_factory=dict)

    def read(self) -> Read:
        name = f"vera-mh-{self.layout.target}" if self.layout.target else "vera-mh"
        if self.layout.manifest is not None:
            self._source(self.layout.manifest)
        source = self._source(self.layout.rubric)
        version = f"rubric {source.digest[:8]}" if source else ""
        rubric = self._rubric(source, name, version)
        people, columns = self._people()
        asked = self._prompts(columns)
        digests = {name: its.digest for name, its in self.sources.items()}
        files = {name: its.data for name, its in self.sources.items()}
        return Read(name, version, rubric, people, asked, digests, files, self.findings)

    def _source(self, path: Path) -> Source | None:
        """A file that is there and holds text."""
        try:
            source = Source.read(path)
            if "\0" in source.text:
                raise UserError(f"{path} holds zero bytes, so it is no text; put the published file there.")
        except UserError as error:
            self.findings.add(path, str(error))
            return None
        self.sources[Path(os.path.relpath(path, self.layout.root)).as_posix()] = source
        return source

    def _rubric(self, source: Source | None, name: str, version: str) -> Rubric | None:
        rows = table.read(source, self.findings) if source else None
        return rubric_tsv.read(rows, name, version, self.rules, self.findings) if rows else None

    def _people(self) -> tuple[People | None, frozenset[str]]:
        """The personas, and the columns that all their files have."""
        sources = [source for path in self.layout.personas if (source := self._source(path))]
        tables = [rows for source in sources if (rows := table.read(source, self.findings))]
        if not tables:
            return None, frozenset()
        columns = frozenset(tables[0].columns).intersection(*(t.columns for t in tables))
        return personas_tsv.read(tables, self.layout.annotations, self.findings), columns

    def _prompts(self, columns: frozenset[str]) -> Prompts | None:
        layout, found = self.layout, self.findings
        persona, system = self._source(layout.persona_prompt), self._source(layout.judge_prompt)
        question = self._source(layout.question_prompt)
        context = self._optional(layout.persona_context)
        remind = self._optional(layout.reminder)
        if persona is None or system is None or question is None:
            return None
        return prompts.assemble(
            prompts.persona_prompt(persona, context, columns, found),
            prompts.reminder(remind),
            prompts.judge_system(system, found),
            prompts.judge_question(question, found),
        )

    def _optional(self, path: Path | None) -> Source | None:
        return None if path is None else self._source(path)
