"""What is wrong with a bundle, or worth a look. Knows no file format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from vera_local.errors import UserError


@dataclass(frozen=True, slots=True)
class Problem:
    """One sentence that names the file, the place in it and the remedy; a `warning` does not stop a bundle."""

    file: Path
    sentence: str
    warning: bool = False


@dataclass
class Findings:
    """The problems and warnings met while a bundle is read, in order."""

    all: list[Problem] = field(default_factory=list)

    def add(self, file: Path, sentence: str) -> None:
        """Add a problem that is already a whole sentence."""
        self.all.append(Problem(file, sentence))

    def problem(self, file: Path, text: str) -> None:
        """Add a problem: `text` is the place, what is wrong; the remedy, without a full stop."""
        self.add(file, f"{file}: {text}.")

    def warn(self, file: Path, text: str) -> None:
        """Add a warning, worded as a problem."""
        self.all.append(Problem(file, f"{file}: {text}.", warning=True))

    @property
    def problems(self) -> list[Problem]:
        """Those that stop the bundle."""
        return [p for p in self.all if not p.warning]

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences of those that do not."""
        return tuple(p.sentence for p in self.all if p.warning)


def raise_first(sentences: Iterable[str]) -> None:
    """UserError with the first sentence and the number of further ones, where there is any."""
    found = list(sentences)
    if found:
        more = len(found) - 1
        further = f" ({more} more problem{'s' if more > 1 else ''}.)" if more else ""
        raise UserError(found[0] + further)
