"""Whether something read from a file has the parts that its readers rely on. Knows no file and no value's meaning."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError


class Part(BaseModel):
    """Only what readers rely on is looked at; whatever else is there may stay."""

    model_config = ConfigDict(extra="ignore", strict=True)


def has_shape(thing: object, shape: type[Part]) -> bool:
    """Whether the parts are there and of their kinds."""
    try:
        shape.model_validate(thing)
    except ValidationError:
        return False
    return True
