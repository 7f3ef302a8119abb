"""The clinical instrument: rubric, walk, personas and prompts, read from a folder and checked. Knows no model."""

from vera_local.bundle.bundle import Bundle, known_bundles, load_bundle
from vera_local.bundle.personas import Persona, choose, load_personas
from vera_local.bundle.prompts import PersonaPrompts, Prompts, Template
from vera_local.bundle.rubric import Action, Do, Option, Question, Rubric
from vera_local.bundle.rubric_file import load_rubric
from vera_local.bundle.schema import PersonaSpec
from vera_local.bundle.walk import Answered, DimensionRating, Walk

__all__ = [
    "Action",
    "Answered",
    "Bundle",
    "DimensionRating",
    "Do",
    "Option",
    "Persona",
    "PersonaPrompts",
    "PersonaSpec",
    "Prompts",
    "Question",
    "Rubric",
    "Template",
    "Walk",
    "choose",
    "known_bundles",
    "load_bundle",
    "load_personas",
    "load_rubric",
]
