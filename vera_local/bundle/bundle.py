"""A bundle: one clinical instrument read from its folder. Knows no model and no run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath

from vera_local.bundle import personas, rubric_file
from vera_local.bundle.personas import Persona, choose
from vera_local.bundle.prompts import Prompts, load_prompts
from vera_local.bundle.rubric import Rubric
from vera_local.bundle.schema import RubricFile
from vera_local.bundle.source import Source
from vera_local.data import data_root
from vera_local.errors import UserError

RUBRIC = "rubric.yaml"


@dataclass(frozen=True)
class Bundle:
    """A rubric with its personas and prompts.

    `turns` counts messages of both sides; `groups` are the values of `group_column`, in order; `end_signal` is empty
    where no model plays a persona; `temperatures` maps a role to its temperature with this bundle, which a run's own
    config overrides; `digests` maps the name of each file read, as the bundle writes it, to its sha256 in hexadecimal.
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
    temperatures: dict[str, float] = field(default_factory=dict)

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


def load_bundle(name_or_path: str | Path) -> Bundle:
    """The bundle of that name in the rubric/ folder, or else in that folder; UserError with the first problem found."""
    folder = _folder(name_or_path)
    source = Source.read(folder / RUBRIC)
    return _assemble(folder, source, rubric_file.parse(source))


def known_bundles() -> tuple[str, ...]:
    """The names of the bundles in the rubric/ folder, sorted."""
    return tuple(sorted(file.parent.name for file in (data_root() / "rubric").glob(f"*/{RUBRIC}")))


def _folder(name_or_path: str | Path) -> Path:
    if str(name_or_path) in known_bundles():
        return data_root() / "rubric" / name_or_path
    folder = Path(name_or_path)
    if (folder / RUBRIC).is_file():
        return folder
    known = ", ".join(known_bundles()) or "none"
    raise UserError(f"there is no bundle '{name_or_path}'; name one of: {known}, or a folder that holds a {RUBRIC}.")


def _assemble(folder: Path, source: Source, content: RubricFile) -> Bundle:
    spec = content.personas
    table = Source.read(_persona_file(folder, spec.file))
    files: dict[str, str] = content.prompts.model_dump(exclude_none=True)
    texts = {key: Source.read(_inside(folder, name, f"prompts.{key}")) for key, name in files.items()}
    digests = {files[key]: text.digest for key, text in texts.items()}
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
        digests={RUBRIC: source.digest, spec.file: table.digest, **digests},
        temperatures=content.sampling.temperatures(),
    )


def _persona_file(folder: Path, name: str) -> Path:
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
