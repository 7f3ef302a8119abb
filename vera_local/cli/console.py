"""A console at which no name and no text of others can act on the terminal. Knows not what is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from vera_local.report.reading import harmless


class HarmlessConsole(Console):
    """Shows what files, servers, chatbots and people named or said as it was written: Rich lets escapes through, and
    makes pictures of words between colons."""

    def __init__(self, file: IO[str] | None = None) -> None:
        super().__init__(file=file, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The parts of what is shown; only those that Rich itself makes to move the cursor are left as they are."""
        for part in super().render(renderable, options):
            yield part if part.control else Segment(harmless(part.text), part.style)
