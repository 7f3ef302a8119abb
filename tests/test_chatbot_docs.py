"""docs/chatbots.md and examples/, held to what the program does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from vera_local.chatbot.manners import LONGEST_PAUSE
from vera_local.chatbot.settings import REPLY_PLACES, Call, HttpSettings, Manners
from vera_local.chatbot.web import BUSY
from vera_local.run import load_config
from vera_local.run.chatbot_table import KINDS
from vera_local.run.roles import CHATBOTS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "chatbots.md").read_text(encoding="utf-8")
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
BLOCKS = [block.replace("\n    ", "\n").strip() for block in re.findall(r"\n\n((?:    .*\n|\n(?=    ))+)", PAGE)]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[1])
def test_every_table_on_the_page_is_sound(block: str) -> None:
    load_config(None, {}, tomllib.loads(block))


def test_the_page_shows_each_kind() -> None:
    shown = {tomllib.loads(block)["chatbot"].get("kind", "local") for block in BLOCKS}
    assert shown == CHATBOTS.keys()
    assert {f"### {kind}" for kind in shown} <= set(PAGE.splitlines())


@pytest.mark.parametrize("key", sorted({key for table in (*KINDS.values(), Call) for key in table.model_fields}))
def test_every_key_is_explained(key: str) -> None:
    assert re.search(rf"`[^`\n]*\b{key}\b[^`\n]*`|^    {key} = ", PAGE, re.MULTILINE)


def test_the_defaults_are_those_on_the_page() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S+)", PAGE, re.MULTILINE))
    told = {
        key: None if value == "none" else float(value) for key, value in rows.items() if key in Manners.model_fields
    }
    assert told == {key: field.default for key, field in Manners.model_fields.items() if key != "name"}
    assert f"at most {LONGEST_PAUSE:.0f} s" in PAGE
    assert all(str(status) in PAGE for status in BUSY)


def test_every_place_is_explained() -> None:
    assert {name for name in REPLY_PLACES if f"`{{{name}}}`" in PAGE} == REPLY_PLACES
    item = HttpSettings.model_fields["history_item"].default
    assert '{"role": "{role}", "content": "{text}"}' in PAGE and item == {"role": "{role}", "content": "{text}"}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_example_is_sound(file: Path) -> None:
    assert load_config(None, {"chatbot": str(file)}).chatbot.kind == file.stem


def test_there_is_an_example_of_each_kind() -> None:
    assert {file.stem for file in EXAMPLES} == CHATBOTS.keys()


def test_the_readme_leads_to_the_page() -> None:
    assert "(docs/chatbots.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
