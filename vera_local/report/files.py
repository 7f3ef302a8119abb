"""Results and transcripts as files. Knows no scoring and no run: it writes what it is given, and holds none of it."""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import polars as pl

from vera_local.conversation import Conversation
from vera_local.errors import UserError
from vera_local.report.cells import cells
from vera_local.score import DRAWS, FEW, LEVEL, SEED, Scores, tidy
from vera_local.score.framing import PART, slices

SCORES_SCHEMA = 2
"""Version of the layout of scores.json."""

# Legal inside JSON strings, but readers that split text into lines break at them, or UTF-8 cannot hold them.
_UNSAFE_IN_LINE = re.compile("[\u0085\u2028\u2029\ud800-\udfff]")


RESULTS, QUESTIONS, SCORES = "results", "questions", "scores"
"""Names of the tables, each a .csv and a .parquet file."""


@dataclass(frozen=True)
class Instrument:
    """What made the ratings: the bundle, and by which persona column its groups are."""

    name: str
    version: str
    group_column: str


def write_results(
    folder: Path,
    ratings: pl.DataFrame,
    questions: pl.DataFrame,
    scores: Mapping[str, Scores],
    by: Instrument,
    juries: Mapping[str, Mapping[str, Any]],
    cards: Mapping[str, Mapping[str, Any] | None],
) -> None:
    """Write the ratings, the questions and each number of the scores as .csv and .parquet, and scores.json.

    In .csv a null (an Unrated rating) is an empty field. `scores` maps judges to scores, `juries` those that stand for
    several to their members and rule, `cards` judges to what a self-test said of them (None: there is none on record).
    Raises UserError where a file cannot be written; files written before stay whole.
    """
    write_table(folder, RESULTS, ratings)
    write_long_table(folder, QUESTIONS, (part.cast(pl.String) for part in slices(questions)))
    write_table(folder, SCORES, tidy(scores, by.group_column))
    write_file(folder / "scores.json", _scores_json(scores, by, juries, cards).encode())


def write_table(folder: Path, name: str, frame: pl.DataFrame) -> None:
    """Write a frame as name.csv and name.parquet; raises UserError as `write_file`."""
    write_frame(frame, folder / f"{name}.csv", folder / f"{name}.parquet")


def write_frame(frame: pl.DataFrame, table: Path | None, parquet: Path | None) -> None:
    """Write a frame to a CSV and a parquet file, as far as they are wanted; raises UserError as `write_file`.

    In the CSV file text that a spreadsheet would run is marked, as `cells` says.
    """
    if parquet is not None:
        with replacing(parquet) as file:
            frame.write_parquet(file)
    if table is not None:
        with replacing(table) as file:
            cells(frame).write_csv(file)


def write_long_table(folder: Path, name: str, parts: Iterable[pl.DataFrame]) -> None:
    """Write frames of one schema, of which there is at least one, one below the other as name.csv and name.parquet.

    One frame at a time is held; raises UserError as `write_file`.
    """
    with (
        replacing(folder / f"{name}.parquet") as parquet,
        replacing(folder / f"{name}.csv") as table,
        tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}.parts.") as beside,
    ):
        written: list[Path] = []
        for frame in parts:
            table.write(cells(frame).write_csv(include_header=not written).encode())
            written.append(Path(beside) / f"{len(written):06}.parquet")
            frame.write_parquet(written[-1])
        _join(written, parquet)


def _join(parts: list[Path], parquet: IO[bytes]) -> None:
    if len(parts) == 1:
        parquet.write(parts[0].read_bytes())
    else:
        # A row group is put together in memory; those of polars are of a quarter of a million rows.
        pl.scan_parquet(parts).sink_parquet(parquet, maintain_order=True, row_group_size=PART)


def write_transcripts(folder: Path, conversations: Iterable[Conversation]) -> None:
    """Write conversations.jsonl, one object per conversation and line; raises UserError where that is not possible."""
    write_parts(folder / "conversations.jsonl", (_line(_transcript(c)).encode() for c in conversations))


def write_file(path: Path, data: bytes) -> None:
    """Put `data` at `path` in one step, readable by the owner alone: a reader sees the old file or the new one.

    Raises UserError where the folder is missing or not writable, or the disk is full; `path` is then unchanged.
    """
    write_parts(path, (data,))


def write_parts(path: Path, parts: Iterable[bytes]) -> None:
    """`write_file` of the parts, one behind the other, holding one at a time."""
    with replacing(path) as file:
        file.writelines(parts)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """What is written to the file that this gives is at `path` once the block has ended; raises as `write_file`."""
    try:
        with _replaced(path) as file:
            yield file
    except (OSError, pl.exceptions.PolarsError) as error:
        told = _system_error(error)
        if told is None:
            raise
        raise _unwritable(path, *told) from error


def _system_error(error: OSError | pl.exceptions.PolarsError) -> tuple[int | None, str] | None:
    """Number and words of what the system said, which polars tells inside its own; None where it said nothing."""
    if found := re.search(r"([^:]+) \(os error (\d+)\)", str(error)):
        return int(found[2]), found[1].strip()
    return (error.errno, error.strerror or str(error)) if isinstance(error, OSError) else None


def _unwritable(path: Path, number: int | None, reason: str) -> UserError:
    if number in (errno.ENOSPC, errno.EDQUOT):
        return UserError(f"No space is left to write {path}: free some and run the same command again.")
    return UserError(f"Cannot write {path} ({reason}): name an existing folder that you may write to.")


@contextmanager
def _replaced(path: Path) -> Iterator[IO[bytes]]:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # made with mode 0600
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _scores_json(
    scores: Mapping[str, Scores],
    by: Instrument,
    juries: Mapping[str, Mapping[str, Any]],
    cards: Mapping[str, Mapping[str, Any] | None],
) -> str:
    content = {
        "schema": SCORES_SCHEMA,
        "bundle": asdict(by),
        "intervals": {"level": LEVEL, "draws": DRAWS, "seed": SEED, "clusters": "personas", "few_below": FEW},
        "judges": {judge: its.model_dump(mode="json") for judge, its in scores.items()},
        "juries": dict(juries),
        "cards": dict(cards),
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _transcript(conversation: Conversation) -> dict[str, object]:
    messages = [
        {"turn": turn, "speaker": message.speaker.value, "text": message.text}
        for turn, message in enumerate(conversation.messages, start=1)
    ]
    return {
        "id": conversation.id,
        "persona": conversation.persona,
        "repeat": conversation.repeat,
        "ending": conversation.ending,
        "messages": messages,
    }


def _line(content: dict[str, object]) -> str:
    text = json.dumps(content, ensure_ascii=False)
    return _UNSAFE_IN_LINE.sub(lambda found: f"\\u{ord(found.group()):04x}", text) + "\n"
