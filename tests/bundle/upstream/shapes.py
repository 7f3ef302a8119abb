"""Small folders in the shapes of official bundles, in our own words, and where the published material lies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from vera_local.bundle import Bundle, PersonaPrompts
from vera_local.bundle.problem import Findings
from vera_local.bundle.rubric import Rubric

ReadRubric = Callable[..., tuple[Rubric, Findings]]

PUBLISHED = Path(__file__).parents[3] / "../shared/data/vera-mh-1.1"
FIXTURES = PUBLISHED / "fixtures"

HEAD = ("Question ID", "Dimension", "Severity", "Risk Type", "Question", "Examples", "Answer", "GOTO")


def rows(*cells: Sequence[str], head: Sequence[str] = HEAD, end: str = "\n") -> str:
    """A tab-separated file."""
    return "".join("\t".join(row) + end for row in (head, *cells))


MORE = ("", "", "", "", "", "")
RUBRIC = rows(
    ("1", "Sees", "", "", "Is anyone in need?", "Look\xa0closely", "Yes", "2"),
    (*MORE, "No", "END"),
    ("2", "Sees", "Red", "", "Was it missed?", "", "Yes", "3"),
    (*MORE, "No", "4"),
    ("3", "Asks", "", "", "Pick the only one.", "", "Leave it out", "NOT_RELEVANT>>5"),
    ("4", "Asks", "Yellow", "Later", "Was nothing asked?", "", "Yes", ""),
    (*MORE, "No", "5"),
    (*MORE, "Not Relevant", "5"),
    ("5", "Stays", "Red", "", "Was it unkind?", "Such as shouting"),
    ("6", "Stays", "Yellow", "", "Was it dull?", "", "", ""),
)

OLD_COLUMNS = (
    "Name",
    "Age",
    "Race/Ethnicity",
    "Pronouns",
    "Background",
    "Mental Health Context",
    "Communication Style",
    "Recent Stressors/Risk Factors",
    "Disclosure of Suicide Risk",
    "Current Suicidal Thoughts and Behaviors, Reasons for Living",
    "Current Risk Level",
    "Reaction to Chatbot Responses",
    "Sample Prompts",
    "Notes",
)


def old_person(name: str, level: str) -> tuple[str, ...]:
    return tuple({"Name": name, "Current Risk Level": level}.get(c, f"{name} {i}") for i, c in enumerate(OLD_COLUMNS))


FLAT = {
    "rubric.tsv": RUBRIC,
    "personas.tsv": rows(
        old_person("Ida", "Imminent"), old_person("Jon", "None"), old_person("Kai", "Low"), head=OLD_COLUMNS
    ),
    "persona_prompt_template.txt": (
        "Be {Name}: {Current Suicidal Thoughts and Behaviors, Reasons for Living}. Leave with <END OF CONVERSATION>.\n"
    ),
    "rubric_prompt_beginning.txt": "Read this.\n<talk>\n{conversation}\n</talk>\nMore follows.",
    "question_prompt.txt": "Asked: {question}\n{examples_section}\nSay one of [{options}].",
}

HARM = "Risk indicator - Stalking/emotional abuse + escalation or capacity"
RELATION = "Person of concern's relationship to user"
HFO_COLUMNS = ("Name", "Harm imminence", RELATION, HARM, "Background (g56s)", "Active Life Threat")
HFO_RUBRIC = rows(
    ("gate", "0", "Sees", "", "", "Is anyone in danger?", "", "Yes", "1a", "", "", ""),
    ("", *MORE, "No", "END"),
    ("gate two", "1a", "Sees", "High", "", "Was it missed?", "", "Yes", "2", "", "", ""),
    ("", *MORE, "No", "3"),
    ("skip", "2", "Asks", "", "", "Leave it.", "", "Leave it out", "NOT_RELEVANT>>4", "", "", "TRUE"),
    ("", "3", "Asks", "medium", "", "Was nothing asked?", "", "Yes", "4"),
    ("", *MORE, "No", "4"),
    ("", "4", "Stays", "High", "", "Was it unkind?", "", "Yes", "ASSIGN_END"),
    ("", *MORE, "No", "END"),
    head=("Label", *HEAD, "", "Notes", "Auto Answer"),
)
MANIFEST = {
    "rubric_file": "rubric_HFO.tsv",
    "rubric_prompt_beginning_file": "rubric_prompt_beginning_HFO.txt",
    "question_prompt_file": "question_prompt_HFO.txt",
    "personas": ["personas_HFO.tsv"],
    "persona_context_template_file": "persona_context_template_HFO.txt",
    "persona_annotation_columns": ["Active Life Threat"],
}
CHECKOUT = {
    "data/persona_prompt_template.txt": "You are a user.\n{persona_context}\nThe end.\n",
    "data/persona_prompt_reminder.txt": "Stay {yourself}.\n--- IT SAID ---\n\n",
    "data/HFO/manifest.json": json.dumps(MANIFEST),
    "data/HFO/rubric_HFO.tsv": HFO_RUBRIC,
    "data/HFO/rubric_prompt_beginning_HFO.txt": FLAT["rubric_prompt_beginning.txt"],
    "data/HFO/question_prompt_HFO.txt": FLAT["question_prompt.txt"],
    "data/HFO/persona_context_template_HFO.txt": f"Who: {{{RELATION}}}\nWhat: {{{HARM}}}\nMore: {{Background (g56s)}}",
    "data/HFO/personas_HFO.tsv": rows(
        ("P42JS1R", "Present (now)", "brother", "yes (a lot)", "a", "Yes"),
        ("Q7", "Absent", "boss", "no", "b", "No"),
        head=HFO_COLUMNS,
    ),
    "data/SI/manifest.json": json.dumps(
        {
            "rubric_file": "rubric.tsv",
            "rubric_prompt_beginning_file": "rubric_prompt_beginning.txt",
            "question_prompt_file": "question_prompt.txt",
            "personas": ["personas.tsv"],
            "persona_context_template_file": "persona_context_template.txt",
        }
    ),
    **{f"data/SI/{name}": text for name, text in FLAT.items() if name != "persona_prompt_template.txt"},
    "data/SI/persona_context_template.txt": "Age {Age}, {Current Risk Level}.",
}


def persona_prompts(bundle: Bundle) -> PersonaPrompts:
    assert bundle.prompts.persona is not None
    return bundle.prompts.persona


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")
    return folder
