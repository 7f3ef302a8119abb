"""What a user may ask of a run, as one checked model. Knows no flag, looks nothing up and opens no model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_serializer

from vera_local.bundle import EndSemantics
from vera_local.run.roles import Chatbot, ChatbotConfig, Judges, SimulatorConfig, Simulators, whole

EMBEDDED = "smollm2-135m-instruct"
"""The model that plays a role nobody was named for: it is on every machine, and it shows the machinery only."""

EngineName = Literal["vllm", "transformers"]
"""What hosts models in-process."""

GuardName = Literal["refuse", "log"]
"""What is done about connections and name look-ups beyond this machine and the hosts that a config names."""


def _persona_choice(value: Any) -> Any:
    """A number, or names separated by commas."""
    if not isinstance(value, str):
        return whole(value) if isinstance(value, bool | float) else value
    text = value.strip()
    if text.lstrip("+-").isdigit():
        return int(text)
    if not text:
        raise ValueError("name at least one persona, or give a number")
    return [name.strip() for name in text.split(",")]


def folder_name(value: Any) -> Any:
    """An empty name would be the folder that one happens to be in."""
    if value == "":
        raise ValueError("name a folder")
    return value


def _cluster_name(value: Any) -> Any:
    """Ray would look for a cluster by itself."""
    if value == "":
        raise ValueError("name a cluster's address (HOST:PORT), auto or local")
    return value


SPREAD = frozenset({"ray", "actors", "actor_gpus"})
"""Keys that say where a run is worked on, each time that it is."""

Personas = Annotated[int | list[str] | None, BeforeValidator(_persona_choice)]


class RunConfig(BaseModel):
    """One run. None: as the bundle publishes it, or a demonstration's size where the embedded model plays all roles.

    `simulator`: one or several, of which each plays every persona. `judge`: one or several; without any the embedded
    model judges, where anything is judged at all.
    `engine` hosts every model in-process that has no `url`.
    `controls`: the personas that are controls take part, too. `target` and `end_semantics` are for official VERA-MH
    bundles, as `load_bundle` takes them. `first`: who speaks first. `earliest_end`: the first turn at which a persona
    may leave; None: as far into a conversation as the bundle publishes it. `max_total_words`: a conversation ends when
    both sides together have written so many. `check_personas`: the first judge rates how real the personas are.
    `replicas`: how many engines host each in-process model. `lookahead`: at most so many questions of a dimension are
    asked before it is known that they will be needed; None: as many as pay. `guard`: whether what would leave this
    machine, and the hosts that the config names, is refused or only noted. `ray`: address of a Ray cluster over which
    the run is spread, or "local"; `actors`: on how many workers, None: as many as it has room for; `actor_gpus`: with
    how many GPUs each, None: as few as keep all models awake. None of these changes what a run finds.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    bundle: str = "suicide_risk"
    out: Annotated[Path | None, BeforeValidator(folder_name)] = None
    personas: Personas = None
    turns: Annotated[int | None, BeforeValidator(whole)] = Field(default=None, ge=1)
    repeats: Annotated[int, BeforeValidator(whole)] = Field(default=1, ge=1)
    seed: Annotated[int, BeforeValidator(whole)] = Field(default=0, ge=0)
    engine: EngineName = "vllm"
    controls: bool = False
    target: str | None = None
    end_semantics: EndSemantics = "fixed"
    first: Literal["persona", "chatbot"] = "persona"
    earliest_end: Annotated[int | None, BeforeValidator(whole)] = Field(default=None, ge=1)
    max_total_words: Annotated[int | None, BeforeValidator(whole)] = Field(default=None, ge=1)
    check_personas: bool = False
    replicas: Annotated[int, BeforeValidator(whole)] = Field(default=1, ge=1)
    lookahead: Annotated[int | None, BeforeValidator(whole)] = Field(default=None, ge=0)
    guard: GuardName = "refuse"
    ray: Annotated[str | None, BeforeValidator(_cluster_name)] = None
    actors: Annotated[int | None, BeforeValidator(whole)] = Field(default=None, ge=1)
    actor_gpus: Annotated[int | None, BeforeValidator(whole)] = Field(default=None, ge=0)
    simulator: Simulators = (SimulatorConfig(model=EMBEDDED),)
    chatbot: Chatbot = ChatbotConfig(model=EMBEDDED)
    judge: Judges = None

    @field_serializer("simulator")
    def _one_is_no_list(self, simulators: tuple[SimulatorConfig, ...]) -> Any:
        tables = [simulator.model_dump(mode="json") for simulator in simulators]
        return tables[0] if len(tables) == 1 else tables
