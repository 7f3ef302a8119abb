"""Where the files of an official bundle lie. Knows only the manifest's content, and opens no other file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vera_local.bundle.source import Source
from vera_local.errors import UserError

MANIFEST = "manifest.json"
RUBRIC = "rubric.tsv"
PERSONA_PROMPT = "persona_prompt_template.txt"
REMINDER = "persona_prompt_reminder.txt"

Name = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True)
class Layout:
    """The files of one bundle. `manifest` and `persona_context` are of versions from 2.0, where `target` names what is
    tested for; `annotations` are columns of the personas that results are reported by."""

    root: Path
    rubric: Path
    judge_prompt: Path
    question_prompt: Path
    personas: tuple[Path, ...]
    persona_prompt: Path
    persona_context: Path | None = None
    reminder: Path | None = None
    target: str | None = None
    annotations: tuple[str, ...] = ()
    manifest: Path | None = None

    @property
    def strict(self) -> bool:
        """Whether the rules that version 2.0 checks when it loads a rubric hold."""
        return self.manifest is not None


class _Manifest(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    rubric_file: Name
    rubric_prompt_beginning_file: Name
    question_prompt_file: Name
    personas: Annotated[list[Name], Field(min_length=1)]
    persona_context_template_file: Name
    persona_annotation_columns: list[Name] = []


def find(path: Path, target: str | None) -> Layout | None:
    """The layout of the bundle in `path`, which is its folder, its manifest or the checkout that holds it.

    None where there is no such bundle; UserError where a target is to be named, or the manifest is not in order.
    """
    folder = path.parent if path.name == MANIFEST and path.is_file() else path
    for data in (folder, folder / "data"):
        if (data / MANIFEST).is_file():
            return _of_target(data) if target is None else _no_targets(data)
        if targets := _targets(data):
            return _of_target(data / _chosen(path, targets, target))
        if (data / RUBRIC).is_file():
            return _flat(data) if target is None else _no_targets(data)
    return None


def _targets(data: Path) -> list[str]:
    return sorted(file.parent.name for file in data.glob(f"*/{MANIFEST}"))


def _chosen(path: Path, targets: list[str], target: str | None) -> str:
    if target in targets:
        return target
    wrong = "a target is to be chosen" if target is None else f"there is no target '{target}'"
    raise UserError(f"{path}: {wrong}; add --target with one of: {', '.join(targets)}.")


def _no_targets(data: Path) -> Layout:
    raise UserError(f"{data} is one bundle without targets to choose from; leave --target out.")


def _flat(data: Path) -> Layout:
    reminder = data / REMINDER
    return Layout(
        root=data,
        rubric=data / RUBRIC,
        judge_prompt=data / "rubric_prompt_beginning.txt",
        question_prompt=data / "question_prompt.txt",
        personas=(data / "personas.tsv",),
        persona_prompt=data / PERSONA_PROMPT,
        reminder=reminder if reminder.exists() else None,
    )


def _of_target(folder: Path) -> Layout:
    source = Source.read(folder / MANIFEST)
    manifest = _parse(source)
    reminder = _shared(folder, REMINDER)
    return Layout(
        root=folder,
        rubric=_named(source.path, manifest.rubric_file),
        judge_prompt=_named(source.path, manifest.rubric_prompt_beginning_file),
        question_prompt=_named(source.path, manifest.question_prompt_file),
        personas=tuple(_named(source.path, name) for name in manifest.personas),
        persona_prompt=_shared(folder, PERSONA_PROMPT),
        persona_context=_named(source.path, manifest.persona_context_template_file),
        reminder=reminder if reminder.exists() else None,
        target=folder.resolve().name,
        annotations=tuple(manifest.persona_annotation_columns),
        manifest=source.path,
    )


def _parse(source: Source) -> _Manifest:
    try:
        return _Manifest.model_validate(json.loads(source.text))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "the file"
        raise UserError(f"{source.path}: {key}: {first['msg'].lower()}; correct it.") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{source.path}: this is not valid JSON ({error}); correct it.") from None


def _named(manifest: Path, name: str) -> Path:
    """A file that the manifest names, in its folder or the one above; UserError where it lies elsewhere."""
    file = _shared(manifest.parent, name)
    if "\0" in name or not file.resolve().is_relative_to(manifest.parent.resolve().parent):
        raise UserError(f"{manifest}: {name!r} lies outside the bundle; name a file inside it.")
    return file


def _shared(folder: Path, name: str) -> Path:
    """`name` in the target's folder, or else in the folder that all targets share."""
    own, shared = folder / name, folder.parent / name
    return shared if not own.exists() and shared.exists() else own
