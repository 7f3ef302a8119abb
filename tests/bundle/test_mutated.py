"""A malformed bundle never half-loads: it is refused in a sentence, or is sound and can be walked."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.bundle.upstream.shapes import CHECKOUT, FLAT, PUBLISHED, persona_prompts, write
from vera_local.bundle import Walk, check, load_bundle
from vera_local.bundle.checks import problems
from vera_local.errors import UserError

TEXTS = [
    *("\t", "\n", "\r", '"', "'", "{", "}", ": ", "- ", "[", "#", "\0", "½", "\ufeff", "&a ", "*a"),
    *("END", "ASSIGN_END", "NOT_RELEVANT>>", "Yes", "true", "None", "1.0", "99999999999999999999"),
    "!!python/name:os.system ",
]


def mutated(data: bytes, draw: random.Random) -> bytes:
    """`data` with one to three things done to it."""
    for _ in range(draw.randint(1, 3)):
        start = draw.randint(0, len(data))
        end = min(len(data), start + draw.choice([0, 1, 8, 60]))
        lines = data.split(b"\n")
        i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
        match draw.randrange(7):
            case 0:
                data = data[:start] + draw.choice(TEXTS).encode() + data[start:]
            case 1:
                data = data[:start] + data[end:]
            case 2:
                data = data[:start] + draw.randbytes(2) + data[end:]
            case 3:
                lines[i], lines[j] = lines[j], lines[i]
                data = b"\n".join(lines)
            case 4:
                data = b"\n".join([*lines[:i], *lines[j:]])
            case 5:
                cells = lines[i].split(b"\t")
                cells[draw.randrange(len(cells))] = draw.choice(TEXTS).encode()
                data = b"\n".join([*lines[:i], b"\t".join(cells), *lines[i + 1 :]])
            case _:
                data = data[: draw.randint(0, len(data))]
    return data


def examine(folder: Path, target: str | None, draw: random.Random) -> bool:
    """Whether it loads; if so it must be sound, and any walk through it must end."""
    try:
        bundle = load_bundle(folder, target)
    except UserError as error:
        assert str(error).strip()
        return False
    assert problems(bundle.rubric) == [] and not [p for p in check(folder, target) if not p.warning]
    walk = Walk.start(bundle.rubric)
    while (question := walk.question) is not None:
        walk = walk.answer(draw.choice([None, *(o.answer for o in question.options)]))
    assert len(walk.ratings()) == len(bundle.rubric.dimensions)
    for persona in bundle.personas:
        persona_prompts(bundle).simulator.render({**persona.fields, "end_signal": ""})
    return True


@pytest.mark.parametrize("part", range(10))
def test_official_bundles(tmp_path: Path, part: int) -> None:
    for seed in range(part * 10, part * 10 + 10):
        draw = random.Random(seed)
        files, target = draw.choice([(FLAT, None), (CHECKOUT, "HFO"), (CHECKOUT, "SI")])
        folder = write(tmp_path / str(seed), files)
        file = folder / draw.choice([name for name in files if target is None or target in name])
        file.write_bytes(mutated(file.read_bytes(), draw))
        examine(folder, target, draw)


@pytest.mark.parametrize("part", range(10))
def test_our_own_bundles(folder: Path, part: int) -> None:
    files = sorted(folder.iterdir())
    sound = {file: file.read_bytes() for file in files}
    for seed in range(part * 10, part * 10 + 10):
        draw = random.Random(seed)
        file = draw.choice([folder / "rubric.yaml", folder / "people.tsv", draw.choice(files)])
        file.write_bytes(mutated(sound[file], draw))
        examine(folder, None, draw)
        file.write_bytes(sound[file])


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published bundle is not in ../shared")
def test_the_published_bundle(tmp_path: Path) -> None:
    files = {file.name: file.read_bytes() for file in PUBLISHED.iterdir() if file.suffix in (".tsv", ".txt")}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    loaded = 0
    for seed in range(40):
        draw = random.Random(seed)
        name = draw.choice(sorted(files))
        (tmp_path / name).write_bytes(mutated(files[name], draw))
        loaded += examine(tmp_path, None, draw)
        (tmp_path / name).write_bytes(files[name])
    assert 0 < loaded < 40
