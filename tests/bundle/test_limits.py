"""A foreign bundle is data: it can neither fill the memory, nor read other files, nor run anything."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from vera_local.bundle import load_bundle
from vera_local.bundle import source as source_module
from vera_local.bundle.prompts import Template
from vera_local.data import data_root
from vera_local.errors import UserError
from vera_local.run import load_config
from vera_local.toml_file import read_toml


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    folder = tmp_path / "rubric" / "foreign"
    shutil.copytree(data_root() / "rubric" / "suicide_risk", folder)
    shutil.copytree(data_root() / "personas", tmp_path / "personas")
    assert load_bundle(folder).personas
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        load_bundle(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def bomb(levels: int, width: int) -> str:
    lines = ["a0: &a0 [" + ", ".join(["x"] * width) + "]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return "\n".join(lines) + "\n"


def test_aliases_that_multiply_are_refused(foreign: Path) -> None:
    (foreign / "rubric.yaml").write_text(bomb(9, 9), encoding="utf-8")
    assert "its aliases repeat too much" in refusal(foreign)


def test_an_alias_of_what_holds_it_is_refused(foreign: Path) -> None:
    (foreign / "rubric.yaml").write_text("ratings: &a [*a]\n", encoding="utf-8")
    assert "its aliases repeat too much" in refusal(foreign)


def test_a_few_aliases_are_welcome(foreign: Path) -> None:
    file = foreign / "rubric.yaml"
    text = file.read_text(encoding="utf-8").replace("ratings: [", "ratings: &ratings [", 1)
    file.write_text(text, encoding="utf-8")
    assert load_bundle(foreign).name == "suicide_risk"


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system ['true']", "!!python/name:os.system ''"])
def test_yaml_makes_no_objects(foreign: Path, tag: str) -> None:
    (foreign / "rubric.yaml").write_text(f"name: {tag}\n", encoding="utf-8")
    assert "could not determine a constructor" in refusal(foreign)


@pytest.mark.parametrize("name", ["rubric.yaml", "simulator.txt"])
def test_a_file_too_large_for_a_bundle_is_not_read(foreign: Path, name: str) -> None:
    with (foreign / name).open("r+b") as file:
        file.truncate(source_module.LARGEST_OF_A_BUNDLE + 1)
    assert f"{name} has more than 10 MB" in refusal(foreign)


def test_a_pipe_is_not_waited_for(foreign: Path) -> None:
    (foreign / "simulator.txt").unlink()
    os.mkfifo(foreign / "simulator.txt")
    assert "a device or a pipe" in refusal(foreign)


@pytest.mark.parametrize("to", ["/etc/passwd", "/dev/zero", "../../../secret"])
def test_a_link_that_leads_out_is_not_followed(foreign: Path, to: str) -> None:
    (foreign.parents[2] / "secret").write_text("secret", encoding="utf-8")
    (foreign / "simulator.txt").unlink()
    (foreign / "simulator.txt").symlink_to(to)
    assert "lies outside" in refusal(foreign)


@pytest.mark.parametrize("name", ["/etc/passwd", "../../personas/suicide_risk.tsv", "..\\x", "C:/x", "~/x"])
def test_a_name_that_leads_out_is_not_followed(foreign: Path, name: str) -> None:
    file = foreign / "rubric.yaml"
    text = file.read_text(encoding="utf-8").replace("simulator: simulator.txt", f"simulator: '{name}'", 1)
    file.write_text(text, encoding="utf-8")
    told = refusal(foreign)
    assert "lies outside" in told or "does not exist" in told


@pytest.mark.parametrize(
    "hostile",
    [
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{name.__class__}",
        "{0.__init__.__globals__}",
        "{% for x in ().__class__.__base__.__subclasses__() %}{{ x }}{% endfor %}",
        "${jndi:ldap://x/}",
        "#{7*7} <%= 7*7 %> `id` $(id)",
    ],
)
def test_a_prompt_s_template_does_nothing_but_put_values_in(hostile: str) -> None:
    text = Template(hostile + " {message}").render(
        {"message": hostile, "name.__class__": "?", "0.__init__.__globals__": "?"}
    )

    assert text.endswith(hostile)
    assert "49" not in text
    assert "object at" not in text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = " + "[" * 100_000, "nested too deep"),
        ("seed = " + "9" * 5_000, "not valid TOML"),
        ("#" * 1_000_001, "no more than 1 MB"),
    ],
)
def test_a_config_cannot_fill_the_memory_or_the_stack(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=told):
        read_toml(file, "config")
    with pytest.raises(UserError, match=told):
        load_config(None, {"chatbot": str(file)})
