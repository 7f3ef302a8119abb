"""What scripts/fuzz.py changes, and how the commands read each of it. Knows no way to change anything."""

from __future__ import annotations

import asyncio
import io
import json
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from vera_local.bundle import check as check_bundle
from vera_local.bundle import load_bundle
from vera_local.bundle.suite_file import suite_of
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
from vera_local.run.recovering import recover_run
from vera_local.run.reported import record_of
from vera_local.run.store import Store
from vera_local.run.viewed import Viewed, advance_of

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


def read_chatbots(first: Path) -> None:
    """Each table of a chatbot beside this one."""
    for file in sorted(first.parent.glob("*.toml")):
        load_config(None, {"chatbot": str(file)})


def read_profiles(first: Path) -> None:
    """Each profile beside this one."""
    for file in sorted(first.parent.glob("*.toml")):
        load_profile(file)


def read_bundle(folder: Path) -> None:
    """A bundle with its self-test."""
    check_bundle(folder, None)
    suite_of(load_bundle(folder))


def model_folder(place: Path) -> Path:
    """Make a folder that holds a model of one tensor."""
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


def read_model(folder: Path) -> None:
    """As a run and `models verify` do."""
    find_profile(str(folder))
    verify(folder)


def read_run_folder(folder: Path) -> None:
    """As `compare`, `view`, `show` and `report` do, each by itself, so that one refusal does not hide another.

    `report` comes last: it makes the results anew.
    """
    refusals = list(_refusals(folder, (compared, _viewed, _shown, _reported)))
    if refusals:
        raise refusals[0]


def read_store(folder: Path) -> None:
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


def compared(folder: Path) -> None:
    """Judges, and the run beside a copy of it."""
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


def read_labels(file: Path) -> None:
    """As `agree` does, with every kind of column."""
    agree(Asked(file, (), Layout(("item",), ("safety", "tone"), "rater", None, "bot", ("site",)), Cleaning()))


def made_run(folder: Path) -> Path:
    """A small judged run without a model: servers stand for all of them, and are never asked."""

    def answer(request: Request) -> str:
        draw = random.Random(request.sampling.seed)
        if request.pattern is None:
            return f"message {draw.random()}"
        return draw.choice([option.replace("\\", "") for option in request.pattern.strip("()$").split("|")])

    async def opened(opening: Opening) -> Engine:
        return FakeEngine(answer)

    served: dict[str, Any] = {"simulator": "m@http://127.0.0.1:9/v1", "chatbot": "python:fuzz_reading:make_chatbot"}
    served["judge"] = ["m@http://127.0.0.1:9/v1", "n@http://127.0.0.1:9/v1"]
    plan = make_plan(load_config(None, served | {"out": folder, "personas": 2, "repeats": 1, "turns": 4}))
    asyncio.run(evaluate(plan, opened, Watcher(Console(file=io.StringIO()))))
    return folder


def make_chatbot() -> Callable[[str, list[dict[str, str]]], str]:
    """The chatbot of the small run."""
    return lambda message, history: f"I heard {len(message)} characters."
