"""A bundle: one clinical instrument read from its folder. Knows no model and no run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Literal

from vera_local.bundle import personas, rubric_file, upstream
from vera_local.bundle.personas import Persona, choose
from vera_local.bundle.problem import raise_first
from vera_local.bundle.prompts import Prompts, load_prompts
from vera_local.bundle.rubric import Rubric
from vera_local.bundle.schema import RubricFile
from vera_local.bundle.source import Source
from vera_local.bundle.upstream import Layout
from vera_local.data import data_root, is_place
from vera_local.errors import UserError

RUBRIC = "rubric.yaml"

EndSemantics = Literal["fixed", "legacy"]
"""What END does at a finished rubric of an official bundle: its findings stand, or are discarded as before 2.0."""


@dataclass(frozen=True)
class Bundle:
    """A rubric with its personas and prompts.

    `turns` counts messages of both sides; `groups` are the values of `group_column`, in order; `end_signal` is empty
    where no model plays a persona; `temperatures` maps a role to its temperature with this bundle, which a run's own
    config overrides; `files` maps the name of each file read, as the bundle writes it, to its bytes, and `digests` to
    its sha256 in hexadecimal; `warnings` are sentences about oddities that did not stop it from loading; `folder` holds
    it, None for an official bundle; `earliest_end` is the first of the `turns` at which a persona may leave.
    """

    name: str
    title: str
    version: str
    notice: str
    rubric: Rubric
    personas: tuple[Persona, ...]
    prompts: Prompts
    persona_file: Path
    group_column: str
    groups: tuple[str, ...]
    turns: int
    end_signal: str
    digests: dict[str, str]
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    temperatures: dict[str, float] = field(default_factory=dict)
    end_semantics: EndSemantics = "fixed"
    warnings: tuple[str, ...] = ()
    folder: Path | None = None
    earliest_end: int = 1

    @property
    def has_openings(self) -> bool:
        """Whether the personas' first messages are scripted."""
        return all(p.opening is not None for p in self.personas)

    def available(self, *, controls: bool) -> tuple[Persona, ...]:
        """The personas to choose from, those that are controls only with `controls`."""
        return tuple(p for p in self.personas if controls or not p.control)

    def choose(self, wanted: int | Sequence[str], *, controls: bool = False) -> tuple[Persona, ...]:
        """A number of `available` personas spread evenly over `groups` in their order, or those named.

        UserError as `choose`, and for a control named without `controls`.
        """
        available = self.available(controls=controls)
        names = {p.name for p in self.personas} - {p.name for p in available}
        if not isinstance(wanted, int) and (left_out := [name for name in wanted if name in names]):
            raise UserError(f"'{left_out[0]}' is a control; add --controls, or name another persona.")
        return choose(available, wanted, self.groups)


def load_bundle(name_or_path: str | Path, target: str | None = None, end_semantics: EndSemantics = "fixed") -> Bundle:
    """The bundle of that name in the rubric/ folder, or else in that folder; UserError with the first problem found.

    The folder may hold an official VERA-MH bundle, of which `target` chooses one where it holds several.
    """
    place = find_bundle(name_or_path, target, end_semantics)
    if isinstance(place, Layout):
        return _official(place, end_semantics)
    source = Source.read(place / RUBRIC)
    return _assemble(place, source, rubric_file.parse(source))


def known_bundles() -> tuple[str, ...]:
    """The names of the bundles in the rubric/ folder, sorted."""
    return tuple(sorted(file.parent.name for file in (data_root() / "rubric").glob(f"*/{RUBRIC}")))


def find_bundle(name_or_path: str | Path, target: str | None, end_semantics: EndSemantics) -> Path | Layout:
    """The folder of a bundle with a rubric.yaml, or the files of an official one; UserError where there is neither,
    or an option is given that the bundle does not have."""
    known = str(name_or_path) in known_bundles()
    folder = data_root() / "rubric" / name_or_path if known else Path(name_or_path)
    if is_place(folder / RUBRIC):
        _no_options(folder, target, end_semantics)
        return folder
    layout = upstream.find(folder, target) if is_place(folder) else None
    if layout is None:
        raise UserError(
            f"there is no bundle '{name_or_path}'; name one of: {', '.join(known_bundles()) or 'none'}, or a folder "
            f"that holds a {RUBRIC} or an official VERA-MH bundle."
        )
    return layout


def _no_options(folder: Path, target: str | None, end_semantics: EndSemantics) -> None:
    option = "--target" if target is not None else "--end-semantics" if end_semantics != "fixed" else None
    if option is not None:
        raise UserError(f"{folder}: {option} is for official VERA-MH bundles; leave it out.")


def _official(layout: Layout, end_semantics: EndSemantics) -> Bundle:
    read = upstream.read(layout, legacy=end_semantics == "legacy")
    raise_first(p.sentence for p in read.findings.problems)
    assert read.rubric is not None and read.people is not None and read.prompts is not None
    return Bundle(
        name=read.name,
        title="VERA-MH, official bundle" + (f" {layout.target}" if layout.target else ""),
        version=read.version,
        notice=upstream.NOTICE,
        rubric=read.rubric,
        personas=read.people.personas,
        prompts=read.prompts,
        persona_file=layout.personas[0],
        group_column=read.people.group_column,
        groups=read.people.groups,
        turns=read.turns,
        end_signal=upstream.END_SIGNAL,
        earliest_end=read.earliest_end,
        digests=read.digests,
        files=read.files,
        end_semantics=end_semantics,
        warnings=read.findings.warnings,
    )


def _assemble(folder: Path, source: Source, content: RubricFile) -> Bundle:
    spec = content.personas
    table = Source.read(persona_file(folder, spec.file))
    files: dict[str, str] = content.prompts.model_dump(exclude_none=True)
    texts = {key: Source.read(prompt_file(folder, key, name)) for key, name in files.items()}
    sources = {RUBRIC: source, spec.file: table, **{files[key]: text for key, text in texts.items()}}
    return Bundle(
        name=content.name,
        title=content.title,
        version=content.version,
        notice=content.notice,
        rubric=content.rubric(),
        personas=personas.parse(table, spec),
        prompts=load_prompts(texts, frozenset(spec.columns)),
        persona_file=table.path,
        group_column=spec.group,
        groups=tuple(spec.groups),
        turns=content.turns,
        end_signal=content.end_signal or "",
        earliest_end=content.earliest_end or 1,
        digests={name: its.digest for name, its in sources.items()},
        files={name: its.data for name, its in sources.items()},
        temperatures=content.sampling.temperatures(),
        folder=folder,
    )


def prompt_file(folder: Path, key: str, name: str) -> Path:
    """The file of the prompt `key`; UserError where it lies outside the bundle's folder."""
    return _inside(folder, name, f"prompts.{key}")


def persona_file(folder: Path, name: str) -> Path:
    """The bundle's persona file, in its own folder or the shared one; UserError where it is in neither."""
    shared = folder.resolve().parent.parent / "personas"
    own = _inside(folder, name, "personas.file")
    if own.exists():
        return own
    if (shared / name).exists():
        return _inside(folder, name, "personas.file", shared)
    raise UserError(f"{folder / RUBRIC}: personas.file: '{name}' is neither in {folder} nor in {shared}; put it there.")


def _inside(folder: Path, name: str, key: str, home: Path | None = None) -> Path:
    """The file `name` in `home` (the bundle's folder where left out); UserError where it would lie outside."""
    home = home or folder
    file = home / name
    plain = not PurePosixPath(name).is_absolute() and not PureWindowsPath(name).anchor and "\\" not in name
    if not plain or ".." in PurePosixPath(name).parts or not file.resolve().is_relative_to(home.resolve()):
        raise UserError(f"{folder / RUBRIC}: {key}: '{name}' lies outside {home}; name a file inside it.")
    return file
