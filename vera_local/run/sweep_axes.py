"""The axes of a sweep's file, each as the values that stand on it. Knows no point and looks nothing up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from vera_local.errors import UserError
from vera_local.run.complaints import told
from vera_local.run.config import SPREAD, folder_name
from vera_local.run.roles import whole

Several = Annotated[list[Any] | None, Field(min_length=1)]


class _Table(BaseModel):
    """What a file says under [sweep]: where to, and axes whose values need no table of their own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    out: Annotated[Path | None, BeforeValidator(folder_name)] = None
    bundles: Several = None
    seeds: Annotated[list[Annotated[int, BeforeValidator(whole), Field(ge=0)]] | None, Field(min_length=1)] = None
    chatbots: Several = None
    simulators: Several = None
    judges: Several = None


class Value(NamedTuple):
    """What stands on an axis: the keys that it sets in a config (none: as a config without them), and the name that it
    was given. `where` says in the file's words which one it is."""

    settings: Mapping[str, Any]
    name: str | None
    where: str


class Axes(NamedTuple):
    """All axes, and the keys of a config that are the same in every run. Every judge rates in every run."""

    out: Path
    chatbots: tuple[Value, ...]
    simulators: tuple[Value, ...]
    bundles: tuple[Value, ...]
    seeds: tuple[Value, ...]
    judges: Any
    same: Mapping[str, Any]


def axes_of(file: Path, table: Mapping[str, Any]) -> Axes:
    """The axes of the `table` that a file holds; UserError naming the file and the key that is wrong."""
    rest = dict(table)
    own = _own_table(file, rest.pop("sweep", {}))
    if "out" in rest:
        raise UserError(f"{file}: key out: a sweep makes a folder for each run; write out under [sweep]")
    for key in rest.keys() & SPREAD:
        raise UserError(
            f"{file}: key {key}: a sweep works on this machine alone; spread single runs with `vera-local run`"
        )
    axes = {one: _axis(file, rest, own, one) for one in ("chatbot", "simulator", "bundle", "seed")}
    judges = _settings(file, rest, own, "judge")
    return Axes(
        out=own.out or Path("sweeps") / file.stem,
        chatbots=axes["chatbot"],
        simulators=axes["simulator"],
        bundles=axes["bundle"],
        seeds=axes["seed"],
        judges=judges,
        same=rest,
    )


def _own_table(file: Path, table: Any) -> _Table:
    try:
        return _Table.model_validate(table)
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        key = ".".join(["sweep", *(str(part) for part in found["loc"][:1])])
        if found["type"] == "extra_forbidden":
            raise UserError(
                f"{file}: key {key}: unknown key; known ones are {', '.join(_Table.model_fields)}"
            ) from None
        if found["type"] == "too_short":
            raise _empty(file, key) from None
        raise UserError(f"{file}: key {key}: {told(found)}") from None


def _axis(file: Path, rest: dict[str, Any], own: _Table, one: str) -> tuple[Value, ...]:
    values = _settings(file, rest, own, one) or [None]
    return tuple(_value(file, one, value, n, len(values)) for n, value in enumerate(values, 1))


def _settings(file: Path, rest: dict[str, Any], own: _Table, one: str) -> list[Any] | None:
    """What stands on an axis: under [sweep], or where a config has the key, which is taken out of there."""
    listed, single = getattr(own, f"{one}s"), rest.pop(one, None)
    if listed is not None and single is not None:
        raise UserError(f"{file}: keys {one} and sweep.{one}s: both name the {one}s of the sweep; keep one of them")
    if single == []:
        raise _empty(file, one)
    if listed is None and single is not None:
        return single if isinstance(single, list) else [single]
    return None if listed is None else list(listed)


def _value(file: Path, one: str, setting: Any, place: int, of: int) -> Value:
    where = f"{one} {place} of {of}" if of > 1 else one
    if setting is None:
        return Value({}, None, where)
    if not isinstance(setting, Mapping) or one == "seed":
        return Value({one: setting}, None, where)
    name = setting.get("name")
    if name is not None and not isinstance(name, str):
        raise UserError(f"{file}: key {one}.name ({where}): must be text")
    return Value(_of_table(file, one, setting, where), name, where)


def _of_table(file: Path, one: str, table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What a table on an axis sets: a bundle's, beside which bundle it is, what is different in runs of it."""
    rest = {key: value for key, value in table.items() if key != "name"}
    if one == "bundle":
        if "name" not in table:
            raise UserError(f"{file}: key bundle.name ({where}): missing, add it")
        for key in rest.keys() & {"out", "seed", "bundle", "simulator", "chatbot", "judge", *SPREAD}:
            raise UserError(f"{file}: key bundle.{key} ({where}): is the same for all bundles; write it outside")
        return {"bundle": table["name"], **rest}
    # A chatbot elsewhere has a name in its config, too.
    ours = one == "simulator" or table.get("kind", "openai" if "url" in table else "local") == "local"
    return {one: rest if ours else dict(table)}


def _empty(file: Path, key: str) -> UserError:
    return UserError(f"{file}: key {key}: holds nothing; name at least one, or leave the key out")
