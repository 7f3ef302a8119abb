"""The clinical instrument: rubric, walk, personas and prompts, read from a folder and checked. Knows no model."""

from vera_local.bundle.bundle import Bundle, EndSemantics, known_bundles, load_bundle
from vera_local.bundle.examine import Examined, check, examine
from vera_local.bundle.mermaid import flowchart
from vera_local.bundle.personas import Persona, choose, load_personas
from vera_local.bundle.problem import Problem
from vera_local.bundle.prompts import PersonaPrompts, Prompts, Template
from vera_local.bundle.rubric import Action, Do, Option, Question, Rubric
from vera_local.bundle.rubric_file import load_rubric
from vera_local.bundle.schema import PersonaSpec
from vera_local.bundle.suite import Attack, Case, KeyCase, Kind, Suite, attackers_wish
from vera_local.bundle.suite_file import suite_of
from vera_local.bundle.walk import Answered, DimensionRating, Walk

__all__ = [
    "Action",
    "Answered",
    "Attack",
    "Bundle",
    "Case",
    "DimensionRating",
    "Do",
    "EndSemantics",
    "Examined",
    "KeyCase",
    "Kind",
    "Option",
    "Persona",
    "PersonaPrompts",
    "PersonaSpec",
    "Problem",
    "Prompts",
    "Question",
    "Rubric",
    "Suite",
    "Template",
    "Walk",
    "attackers_wish",
    "check",
    "choose",
    "examine",
    "flowchart",
    "known_bundles",
    "load_bundle",
    "load_personas",
    "load_rubric",
    "suite_of",
]
