"""Broken and hostile files through every loader: an answer or one clear sentence each time, never anything else.

Takes the project's own valid files and a small run, changes them by a seed, and reads them as the commands do. Prints
one line per kind of file, and ends with exit code 1 and the seed of the case where anything else came of it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from fuzz_reading import (
    CONFIG,
    LABELS,
    TABLE,
    TEXT,
    compared,
    made_run,
    model_folder,
    read_bundle,
    read_chatbots,
    read_labels,
    read_model,
    read_profiles,
    read_run_folder,
    read_store,
)
from polars.exceptions import PanicException

from vera_local.data import data_root
from vera_local.errors import UserError
from vera_local.run import load_config, make_plan
from vera_local.run.recordings import find

SECONDS = 20
"""A case that takes longer hangs."""

MEMORY = 8_000_000_000
"""Bytes of address space of the whole process."""

PIECES = (
    *(
        b"\t",
        b"\n",
        b"\r",
        b'"',
        b"'",
        b"{",
        b"}",
        b": ",
        b"- ",
        b"[",
        b"]",
        b"#",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b",",
    ),
    *(b"&a ", b"*a", b"!!python/name:os.system ", b"null", b"true", b"-1", b"1e999", b"NaN", b"9" * 40, b"9" * 5000),
    *("½\u2028".encode(), b"\\ud800", b"[" * 3000, b"../../etc/passwd", b"/dev/zero", b"=1+1", b"user: ", b"END"),
)

CELLS = (
    None,
    "",
    "x",
    "\0",
    "[]",
    "{}",
    "[1]",
    '{"Yes": null}',
    "[[]]",
    "1",
    -1,
    0,
    1,
    2**62,
    1.5,
    b"\xff",
    b"",
    "-1e999",
)
"""What a cell of a store takes."""


class Kind(NamedTuple):
    """Files to change, and what reads them: `files` copies some, `change` changes one of those that `changed` names,
    `read` reads them; `share`: how many of all cases these are, beside the other kinds."""

    name: str
    files: Callable[[Path], Path]
    changed: str
    read: Callable[[Path], object]
    share: int
    change: Callable[[Path, random.Random], None] = lambda file, draw: _mutate(file, draw)


def main() -> None:
    """Run so many cases from a seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="how many (10000)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (0)")
    parser.add_argument("--kind", help="only this kind of file")
    parser.add_argument("--only", metavar="SEED", help="one case again, by the seed that was told")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    wrong = fuzz(given.cases, given.seed, kind=given.kind, only=given.only)
    sys.exit(1 if wrong else 0)


def fuzz(cases: int, seed: int, *, kind: str | None = None, only: str | None = None) -> list[str]:
    """What came of cases that are neither an answer nor a sentence, each as a seed and a traceback."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="vera-local-fuzz-") as place:
        root = Path(place)
        kinds = [k for k in _kinds(made_run(root / "run")) if kind in (None, k.name)]
        total = sum(k.share for k in kinds)
        for one in kinds:
            count = max(1, round(cases * one.share / total))
            seeds = [f"{seed}:{one.name}:{n}" for n in range(count)]
            ends: Counter[str] = Counter()
            for case in seeds if only is None else [s for s in [only] if f":{one.name}:" in s]:
                ends[_case(one, case, root / "case", wrong)] += 1
            print(f"{one.name:<12} {', '.join(f'{n} {end}' for end, n in sorted(ends.items()))}", flush=True)
    return wrong


def _case(kind: Kind, case: str, place: Path, wrong: list[str]) -> str:
    """Make, change and read one file; "answered", "refused" or "WRONG"."""
    draw = random.Random(case)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    target = kind.files(place)
    files = sorted(file for file in place.glob(kind.changed) if file.is_file())
    file = draw.choice(files)
    kind.change(file, draw)
    try:
        with _limited(), contextlib.redirect_stdout(io.StringIO()):
            kind.read(target)
    except UserError as error:
        if str(error).strip():
            return "refused"
        wrong.append(f"{case}: a refusal that says nothing")
    except (Exception, PanicException):
        wrong.append(f"{case}: {file.name}\n{traceback.format_exc()}")
        print(wrong[-1], file=sys.stderr, flush=True)
    else:
        return "answered"
    return "WRONG"


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def late(signum: int, frame: object) -> None:
        raise TimeoutError(f"not done after {SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def _mutate(file: Path, draw: random.Random) -> None:
    file.write_bytes(mutated(file.read_bytes(), draw))


def change_rows(file: Path, draw: random.Random) -> None:
    """One to three cells of a store take another value, or lose their row; the file stays a sound one of SQLite."""
    with contextlib.closing(sqlite3.connect(file)) as db, db:
        tables = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'").fetchall()]
        tables = [table for table in tables if db.execute(f"select count(*) from {table}").fetchone()[0]]
        for _ in range(draw.randint(1, 3)):
            table = draw.choice(tables)
            column = draw.choice([name for _, name, *_ in db.execute(f"pragma table_info({table})")])
            one = f"rowid = (select rowid from {table} order by rowid limit 1 offset {draw.randrange(3)})"
            with contextlib.suppress(sqlite3.IntegrityError):
                if draw.random() < 0.1:
                    db.execute(f"delete from {table} where {one}")
                else:
                    db.execute(f"update {table} set {column} = ? where {one}", (draw.choice(CELLS),))


def mutated(data: bytes, draw: random.Random) -> bytes:
    """`data` with one to four things done to it."""
    for _ in range(draw.randint(1, 4)):
        start = draw.randint(0, len(data))
        end = min(len(data), start + draw.choice([0, 1, 2, 8, 60, 400]))
        match draw.randrange(8):
            case 0:
                data = data[:start] + draw.choice(PIECES) + data[start:]
            case 1:
                data = data[:start] + draw.choice(PIECES) + data[end:]
            case 2:
                data = data[:start] + data[end:]
            case 3:
                data = data[:start] + draw.randbytes(end - start) + data[end:]
            case 4:
                other = draw.randint(0, len(data))
                data = data[:other] + data[start:end] + data[other:]
            case 5:
                lines = data.split(b"\n")
                lines[draw.randrange(len(lines))] = lines[draw.randrange(len(lines))]
                data = b"\n".join(lines)
            case 6:
                data = _other_value(data, draw)
            case _:
                data = data[: draw.randint(0, len(data))] if draw.random() < 0.3 else data
    return data


def _other_value(data: bytes, draw: random.Random) -> bytes:
    """JSON with one value replaced by one of another type, or left out; other data stays."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return data
    node, steps = content, draw.randint(0, 6)
    for _ in range(steps):
        keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
        if not keys:
            break
        key = draw.choice(keys)
        if not isinstance(node[key], dict | list) or not node[key] or draw.random() < 0.3:
            if draw.random() < 0.3:
                del node[key]
            else:
                node[key] = draw.choice([None, 1, -1, 1.5, "", "x", [], {}, [[]], {"a": {}}, True, "\ud800", 10**30])
            break
        node = node[key]
    return json.dumps(content).encode()


def _kinds(run: Path) -> list[Kind]:
    root = data_root()
    checkout = Path(__file__).resolve().parents[1]

    def copied(*sources: Path) -> Callable[[Path], Path]:
        def copy(place: Path) -> Path:
            for source in sources:
                (shutil.copytree if source.is_dir() else shutil.copy)(source, place / source.name)
            return place / sources[0].name

        return copy

    def bundle(name: str) -> Callable[[Path], Path]:
        def copy(place: Path) -> Path:
            shutil.copytree(root / "rubric" / name, place / "rubric" / name)
            shutil.copytree(root / "personas", place / "personas")
            return place / "rubric" / name

        return copy

    def transcript(suffix: str, text: str) -> Callable[[Path], Path]:
        def write(place: Path) -> Path:
            (place / f"a_Ada_m_run1{suffix}").write_text(text, encoding="utf-8")
            return place / f"a_Ada_m_run1{suffix}"

        return write

    return [
        Kind("config", transcript(".toml", CONFIG), "*.toml", lambda file: make_plan(load_config(file, {})), 3),
        Kind("chatbot", copied(*sorted((checkout / "examples").glob("*.toml"))), "*.toml", read_chatbots, 2),
        Kind("profile", copied(*sorted((root / "models").glob("*.toml"))), "*.toml", read_profiles, 2),
        Kind("bundle", bundle("suicide_risk"), "rubric/*/*", read_bundle, 3),
        Kind("vignettes", bundle("psychosis"), "*/*", read_bundle, 1),
        Kind("suite", bundle("psychosis"), "rubric/*/*.yaml", read_bundle, 2),
        Kind("text", transcript(".txt", TEXT), "*.txt", find, 2),
        Kind("jsonl", copied(run / "conversations.jsonl"), "*.jsonl", find, 3),
        Kind("csv", transcript(".csv", TABLE), "*.csv", find, 2),
        Kind("labels", transcript(".csv", LABELS), "*.csv", read_labels, 2),
        Kind("model", model_folder, "model/*", read_model, 2),
        Kind("manifest", copied(run), "run/manifest.json", read_run_folder, 3),
        Kind("results", copied(run), "run/scores.json", read_run_folder, 2),
        Kind("parquet", copied(run), "run/*.parquet", compared, 2),
        Kind("store", copied(run), "run/run.sqlite", read_store, 3),
        Kind("rows", copied(run), "run/run.sqlite", read_store, 3, change_rows),
    ]


if __name__ == "__main__":
    main()
