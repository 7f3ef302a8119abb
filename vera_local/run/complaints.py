"""What is wrong with a config, as one sentence for who wrote it. Knows no rule that a config must keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from vera_local.chatbot.settings import Call
from vera_local.run.config import RunConfig
from vera_local.run.flags import JUDGE_FLAGS, flag_as_written
from vera_local.run.roles import CHATBOTS, ROLES, RoleConfig


def complaint(error: ValidationError, source: str, table: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Where the first error is, in the `table` of `source` or in the flags `given`, and what is wrong there."""
    found = error.errors(include_url=False)[0]
    loc, known = _place(found["loc"])
    top = str(loc[0]) if loc else ""
    where = _flag_of(loc, given) if top in given else f"{source}: {_key(loc, table)}"
    if found["type"] == "extra_forbidden":
        return f"{where}: unknown key; known ones are {', '.join(known.model_fields)}"
    if found["type"] == "missing":
        return f"{where}: missing, add it"
    return f"{where}: {told(found)}"


def _place(loc: tuple[int | str, ...]) -> tuple[tuple[int | str, ...], type[BaseModel]]:
    """Where an error is, as a user would write it, and the table that this place is in."""
    if len(loc) < 2:
        return loc, RunConfig
    if loc[0] != "chatbot" or loc[1] not in CHATBOTS:
        return loc, ROLES.get(str(loc[0]), RoleConfig)
    # The kind that pydantic names here is no key.
    place = loc[:1] + loc[2:]
    return place, Call if len(place) > 2 and place[1] in ("start", "end") else CHATBOTS[str(loc[1])]


def _key(loc: tuple[int | str, ...], table: Mapping[str, Any]) -> str:
    """The key of a file, dotted; of several judges or simulators, which one."""
    # The members of a union are named by their type; a user knows no such key.
    parts = [part for part in loc if isinstance(part, str) and part not in ("int", "list[str]")]
    several = table.get(parts[0]) if parts[:1] in (["judge"], ["simulator"]) else None
    place = next((part for part in loc if isinstance(part, int)), None)
    which = f" ({parts[0]} {place + 1} of {len(several)})" if isinstance(several, list) and place is not None else ""
    return f"key {'.'.join(parts)}{which}"


def _flag_of(loc: tuple[int | str, ...], given: Mapping[str, Any]) -> str:
    """The flag that is wrong: that of the role, or one that holds for every judge."""
    shared = next((flag for flag, key in JUDGE_FLAGS.items() if flag in given and key == loc[-1]), None)
    if loc[0] != "judge" or shared is None:
        value, place = given[str(loc[0])], loc[1] if len(loc) > 1 else None
        one = value[place] if isinstance(value, list | tuple) and isinstance(place, int) else value
        inside = loc[1:] if loc[0] == "chatbot" and str(one).endswith(".toml") else ()
        key = f": key {'.'.join(map(str, inside))}" if inside else ""
        return f"--{str(loc[0]).replace('_', '-')} {one}{key}"
    return flag_as_written(shared, given)


def told(found: Any) -> str:
    """What is wrong with one value, of which pydantic found this."""
    bounds = found.get("ctx", {})
    match found["type"]:
        case "greater_than_equal":
            return f"must be at least {bounds['ge']}"
        case "int_parsing" | "int_type" | "int_from_float":
            return "must be a whole number"
        case "literal_error" | "enum":
            return f"must be {bounds['expected']}"
        case "string_pattern_mismatch":
            return "must begin with http:// or https://"
        case "string_too_short":
            return "must not be empty"
        case "bool_parsing" | "bool_type":
            return "must be true or false"
        case "tuple_type":
            return "must be a model's name, a table of settings or a list of these"
        case "model_type" | "model_attributes_type":
            return "must be a model's name or a table of settings"
        case "union_tag_invalid":
            return f"there is no kind {bounds['tag']}; choose one of {bounds['expected_tags']}"
    message: str = found["msg"].removeprefix("Value error, ")
    return f"{message[:1].lower()}{message[1:]}"
