"""Conversations that were held elsewhere, read from files. Knows no format, which `transcripts` does, and no run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vera_local.bundle.source import LARGEST, Source
from vera_local.conversation import Conversation
from vera_local.errors import UserError
from vera_local.transcripts import Recording, read_jsonl, read_name, read_table, read_text


@dataclass(frozen=True)
class Found:
    """What was read: conversations, name -> sha256 of each file, and what a reader should look at."""

    conversations: tuple[Conversation, ...]
    files: dict[str, str]
    notes: tuple[str, ...]


def find(path: Path) -> Found:
    """Read the .txt files in and below a folder, or one .txt, .jsonl or .csv file.

    Raises UserError, naming file and line, for what cannot be read.
    """
    root, files = _files(path)
    for file in files:
        _must_be_named(file)
    stems, digests, recordings = Counter(file.stem for file in files), dict[str, str](), list[Recording]()
    for file in files:
        # One at a time, so that of each nothing is kept but what was said in it.
        source, name = Source.read(file, LARGEST), file.relative_to(root)
        recordings += _recordings(source, name, alone=stems[file.stem] == 1)
        digests[name.as_posix()] = source.digest
    if not recordings:
        raise UserError(f"{path}: holds no conversation; name another file or folder.")
    return Found(
        conversations=tuple(r.conversation for r in recordings),
        files=digests,
        notes=tuple(note for r in recordings for note in r.notes),
    )


def _files(path: Path) -> tuple[Path, Sequence[Path]]:
    """The folder that names are relative to, and the files, sorted."""
    if not path.is_dir():
        return path.parent, [path]
    files = sorted(f for f in path.rglob("*.txt") if f.is_file() and _seen(f, path))
    if not files:
        raise UserError(f"{path}: no .txt file is in or below this folder; name another one, or a single file.")
    return path, files


def _seen(file: Path, root: Path) -> bool:
    return not any(part.startswith(".") for part in file.relative_to(root).parts)


def _must_be_named(file: Path) -> None:
    """UserError where the name, which is to name a conversation, is no text."""
    try:
        str(file).encode()
    except UnicodeEncodeError:
        raise UserError(f"{str(file)!r}: the name of this file is not UTF-8; rename it.") from None


def _recordings(source: Source, name: Path, *, alone: bool) -> Sequence[Recording]:
    """`alone`: no other file has its name; the path tells files of one name in different folders apart."""
    place = str(source.path)
    match name.suffix.lower():
        case ".txt":
            return (_recording(source, name.stem if alone else name.with_suffix("").as_posix()),)
        case ".jsonl":
            return read_jsonl(source.text, place, name.stem)
        case ".csv":
            return read_table(source.text, place)
    raise UserError(f"{place}: this is no .txt, .jsonl or .csv file; name such a file, or a folder of .txt.")


def _recording(source: Source, id: str) -> Recording:
    text, named = read_text(source.text, str(source.path)), read_name(source.path.stem)
    return Recording(Conversation(id, named.persona, named.repeat, text.messages, text.ending), text.notes)
