"""Every problem of a bundle at once, of our own format or an official one. Knows no model and no run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from vera_local.bundle import personas, prompts, rubric_file, suite_file, upstream
from vera_local.bundle.bundle import RUBRIC, EndSemantics, find_bundle, persona_file, prompt_file
from vera_local.bundle.personas import Persona
from vera_local.bundle.problem import Findings, Problem
from vera_local.bundle.rubric import Rubric
from vera_local.bundle.schema import RubricFile
from vera_local.bundle.source import Source
from vera_local.bundle.upstream import Layout
from vera_local.errors import UserError

T = TypeVar("T")


@dataclass(frozen=True)
class Examined:
    """What a bundle holds as far as it can be understood, and its problems and warnings, in the order met."""

    rubric: Rubric | None
    personas: tuple[Persona, ...]
    findings: Findings


def check(name_or_path: str | Path, target: str | None = None) -> list[Problem]:
    """Every problem and warning of a bundle; UserError where there is none of that name."""
    return examine(name_or_path, target).findings.all


def examine(name_or_path: str | Path, target: str | None = None, end_semantics: EndSemantics = "fixed") -> Examined:
    """Look at everything in a bundle; UserError where there is none of that name."""
    place = find_bundle(name_or_path, target, end_semantics)
    if isinstance(place, Layout):
        read = upstream.read(place, legacy=end_semantics == "legacy")
        return Examined(read.rubric, read.people.personas if read.people else (), read.findings)
    return _Own(place, Findings()).examine()


@dataclass(frozen=True)
class _Own:
    """A bundle with a rubric.yaml."""

    folder: Path
    findings: Findings

    def examine(self) -> Examined:
        file = self.folder / RUBRIC
        looked = self._try(file, lambda: rubric_file.examine(Source.read(file)))
        content, found = looked or (None, [])
        self._tell(file, found)
        if content is None:
            return Examined(None, (), self.findings)
        people = self._personas(content)
        self._prompts(content)
        if not found:
            self._selftest(content.rubric())
        return Examined(content.rubric(), people, self.findings)

    def _personas(self, content: RubricFile) -> tuple[Persona, ...]:
        spec = content.personas
        table = self._try(self.folder / RUBRIC, lambda: Source.read(persona_file(self.folder, spec.file)))
        if table is None:
            return ()
        found = personas.problems(table, spec)
        self._tell(table.path, found)
        return () if found else personas.parse(table, spec)

    def _prompts(self, content: RubricFile) -> None:
        columns = frozenset(content.personas.columns)
        for key, name in content.prompts.model_dump(exclude_none=True).items():
            source = self._prompt(key, name)
            if source is not None:
                self._tell(source.path, prompts.problems({key: source}, columns))

    def _prompt(self, key: str, name: str) -> Source | None:
        return self._try(self.folder / RUBRIC, lambda: Source.read(prompt_file(self.folder, key, name)))

    def _selftest(self, rubric: Rubric) -> None:
        file = self.folder / suite_file.SELFTEST
        looked = self._try(file, lambda: suite_file.examine(Source.read(file), rubric)) if file.exists() else None
        self._tell(file, looked[1] if looked else [])

    def _try(self, file: Path, look: Callable[[], T]) -> T | None:
        try:
            return look()
        except UserError as error:
            self.findings.add(file, str(error))
            return None

    def _tell(self, file: Path, sentences: list[str]) -> None:
        for sentence in sentences:
            self.findings.add(file, sentence)
