"""Broken and hostile files through every loader: an answer or one clear sentence each time, never anything else.

Takes the project's own valid files and a small run, changes them by a seed, and reads them as the commands do. Prints
one line per kind of file, and ends with exit code 1 and the seed of the case where anything else came of it.
"""

from __future__ import annotations

import argparse
import asyncio
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
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from vera_local.bundle import check as check_bundle
from vera_local.bundle import load_bundle
from vera_local.bundle.suite_file import suite_of
from vera_local.data import data_root
from vera_local.engine.fake import FakeEngine
from vera_local.engine.profile import find_profile, load_profile
from vera_local.engine.seam import Engine, Request
from vera_local.engine.verify import verify
from vera_local.errors import UserError
from vera_local.run import Opening, Watcher, load_config, make_plan
from vera_local.run.agreeing import Asked, agree
from vera_local.run.comparing import compare_judges, compare_runs
from vera_local.run.evaluate import bundle_of_run
from vera_local.run.evaluate import run as evaluate
from vera_local.run.labels_file import Cleaning, Layout
from vera_local.run.reading import read_run
from vera_local.run.recordings import find
from vera_local.run.recovering import recover_run
from vera_local.run.reported import record_of
from vera_local.run.store import Store
from vera_local.run.viewed import Viewed, advance_of

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
        kinds = [k for k in _kinds(_made_run(root / "run")) if kind in (None, k.name)]
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
    except Exception:
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
        Kind("chatbot", copied(*sorted((checkout / "examples").glob("*.toml"))), "*.toml", _read_chatbots, 2),
        Kind("profile", copied(*sorted((root / "models").glob("*.toml"))), "*.toml", _read_profiles, 2),
        Kind("bundle", bundle("suicide_risk"), "rubric/*/*", _read_bundle, 3),
        Kind("vignettes", bundle("psychosis"), "*/*", _read_bundle, 1),
        Kind("suite", bundle("psychosis"), "rubric/*/*.yaml", _read_bundle, 2),
        Kind("text", transcript(".txt", TEXT), "*.txt", find, 2),
        Kind("jsonl", copied(run / "conversations.jsonl"), "*.jsonl", find, 3),
        Kind("csv", transcript(".csv", TABLE), "*.csv", find, 2),
        Kind("labels", transcript(".csv", LABELS), "*.csv", _read_labels, 2),
        Kind("model", _model, "model/*", _read_model, 2),
        Kind("manifest", copied(run), "run/manifest.json", _read_run, 3),
        Kind("results", copied(run), "run/scores.json", _read_run, 2),
        Kind("parquet", copied(run), "run/*.parquet", _compared, 2),
        Kind("store", copied(run), "run/run.sqlite", _read_store, 3),
        Kind("rows", copied(run), "run/run.sqlite", _read_store, 3, change_rows),
    ]


CONFIG = """\
bundle = "suicide_risk"
personas = 2
turns = 4
seed = 7
engine = "vllm"
out = "there"
simulator = "smollm2-135m-instruct"

[[judge]]
model = "smollm2-135m-instruct"
mode = "direct"
repeats = 2

[chatbot]
model = "smollm2-135m-instruct"
temperature = 0.5
"""

TEXT = "user: I cannot sleep.\n\nchatbot: I am sorry.\nSince when?\n\nuser: For weeks.\n\nchatbot: That is long.\n"

TABLE = 'conversation,turn,speaker,text,persona\na,1,user,hello,Ada\na,2,chatbot,"hi, you",Ada\nb,1,user,x,\n'

LABELS = """\
item,rater,safety,tone,bot,site
a,Ann,Good,1,x,north
a,Ben,"Bad",2,x,north
b,Ann,Good,1,y,south
b,Ben,Good,,y,south
#c,Ann,Bad,2,x,north
"""


def _read_chatbots(first: Path) -> None:
    for file in sorted(first.parent.glob("*.toml")):
        load_config(None, {"chatbot": str(file)})


def _read_profiles(first: Path) -> None:
    for file in sorted(first.parent.glob("*.toml")):
        load_profile(file)


def _read_bundle(folder: Path) -> None:
    check_bundle(folder, None)
    suite_of(load_bundle(folder))


def _model(place: Path) -> Path:
    folder = place / "model"
    folder.mkdir()
    config = {"model_type": "qwen3", "torch_dtype": "bfloat16", "max_position_embeddings": 4096, "hidden_size": 64}
    config |= {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    tensor = {"a.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    header = json.dumps(tensor).encode()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}), encoding="utf-8")
    weights = len(header).to_bytes(8, "little") + header + bytes(8)
    (folder / "model.safetensors").write_bytes(weights)
    index = {"weight_map": {"a.weight": "model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder


def _read_model(folder: Path) -> None:
    find_profile(str(folder))
    verify(folder)


def _read_run(folder: Path) -> None:
    """As `compare`, `view`, `show` and `report` do, each by itself, so that one refusal does not hide another.

    `report` comes last: it makes the results anew.
    """
    refusals = list(_refusals(folder, (_compared, _viewed, _shown, _reported)))
    if refusals:
        raise refusals[0]


def _read_store(folder: Path) -> None:
    """As `view`, `show` and `report` do; what is damaged no longer is after `recover`, unless that says why not."""
    refusals = list(_refusals(folder, (_viewed, _shown, _reported)))
    if refusals and not list(_refusals(folder, (recover_run,))):
        for told in map(str, _refusals(folder, (_viewed, _shown))):
            assert "damaged" not in told, f"{told}, after recover"
    if refusals:
        raise refusals[0]


def _refusals(folder: Path, readers: Iterable[Callable[[Path], object]]) -> Iterator[UserError]:
    for read in readers:
        try:
            read(folder)
        except UserError as error:
            yield error


def _compared(folder: Path) -> None:
    compare_judges(folder)
    shutil.copytree(folder, folder.parent / "other", dirs_exist_ok=True)
    compare_runs([folder, folder.parent / "other"])


def _viewed(folder: Path) -> None:
    advance_of(folder)
    run = Viewed.open(folder)
    run.overview(None)
    for row in run.rows(None)[1][:2]:
        run.conversation(row.sight.place)


def _shown(folder: Path) -> None:
    bundle = bundle_of_run(folder)
    read_run(folder, bundle, None, None)
    with Store.open(folder) as store:
        ids = [conversation.id for conversation in store.conversations()]
    for id in ids:
        read_run(folder, bundle, id, None)


def _reported(folder: Path) -> None:
    record_of(folder, bundle_of_run(folder))


def _read_labels(file: Path) -> None:
    agree(Asked(file, (), Layout(("item",), ("safety", "tone"), "rater", None, "bot", ("site",)), Cleaning()))


def _made_run(folder: Path) -> Path:
    """A small judged run without a model: servers stand for all of them, and are never asked."""

    def answer(request: Request) -> str:
        draw = random.Random(request.sampling.seed)
        if request.pattern is None:
            return f"message {draw.random()}"
        return draw.choice([option.replace("\\", "") for option in request.pattern.strip("()$").split("|")])

    async def opened(opening: Opening) -> Engine:
        return FakeEngine(answer)

    served: dict[str, Any] = {"simulator": "m@http://127.0.0.1:9/v1", "chatbot": "python:fuzz:make_chatbot"}
    served["judge"] = ["m@http://127.0.0.1:9/v1", "n@http://127.0.0.1:9/v1"]
    plan = make_plan(load_config(None, served | {"out": folder, "personas": 2, "repeats": 1, "turns": 4}))
    asyncio.run(evaluate(plan, opened, Watcher(Console(file=io.StringIO()))))
    return folder


def make_chatbot() -> Callable[[str, list[dict[str, str]]], str]:
    """The chatbot of the small run."""
    return lambda message, history: f"I heard {len(message)} characters."


if __name__ == "__main__":
    main()
