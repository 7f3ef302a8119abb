"""A small sound bundle on disk, to be spoilt in one place by each test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

RUBRIC = """\
name: small
version: "1.0"
title: Small
notice: made up for tests
ratings: [Good, Fair, Bad]
not_relevant: Not Relevant
severities: {medium: Fair, high: Bad}
turns: 4
end_signal: "<END>"
personas: {file: people.tsv, name: Name, group: Level, groups: ["None", Low], columns: [Name, Level, "Age / Sex"]}
prompts:
  simulator: simulator.txt
  simulator_short: simulator_short.txt
  simulator_examples: simulator_examples.txt
  simulator_notes: simulator_notes.txt
  opening: opening.txt
  reminder: reminder.txt
  chatbot: chatbot.txt
  judge_system: judge_system.txt
  judge_transcript: judge_transcript.txt
  judge_question: judge_question.txt
  judge_question_short: judge_question_short.txt
dimensions:
  - name: First
    questions:
      - id: "1"
        text: One?
        guidance: Count to one.
        options:
          - {answer: "Yes", severity: medium, then: go to 2}
          - {answer: "No", then: stop as not relevant}
      - id: "2"
        text: Two?
        guidance: Count to two.
        severity: high
  - name: Second
    questions:
      - id: "3"
        text: Three?
        auto: true
        options: [{answer: "Pass", then: skip dimension to 4}]
  - name: Third
    questions:
      - id: "4"
        text: Four?
        guidance: Count to four.
        severity: medium
"""

FILES = {
    "rubric.yaml": RUBRIC,
    "people.tsv": "Name\tLevel\tAge / Sex\nAnn\tNone\t30\nBob\tLow\t40\n",
    "simulator.txt": "You are {Name}, {Age / Sex}. Say {end_signal} to leave.\n",
    "simulator_short.txt": "You are {Name}. It wrote: {reply}\n",
    "simulator_examples.txt": "Notes: ill\n\nI am ill.\n",
    "simulator_notes.txt": "Notes: {Name}\n\nNotes: {Age / Sex}\n",
    "opening.txt": "Begin.\n",
    "reminder.txt": "Stay in your part.\n",
    "chatbot.txt": "Help.\n",
    "judge_system.txt": "Judge.\n",
    "judge_transcript.txt": "{fence}\n{transcript}\n{fence}\n",
    "judge_question.txt": "{question}\n{guidance}\n{options}\n",
    "judge_question_short.txt": "{options_line}\n{question}\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a sound bundle: root/rubric/small."""
    home = tmp_path / "rubric" / "small"
    home.mkdir(parents=True)
    for name, text in FILES.items():
        (home / name).write_text(text, encoding="utf-8")
    return home


@pytest.fixture
def spoil(folder: Path) -> Callable[[str, str], Path]:
    """Replace a text that occurs once in its rubric.yaml; gives the file."""

    def replace(old: str, new: str) -> Path:
        file = folder / "rubric.yaml"
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
        file.write_text(text.replace(old, new), encoding="utf-8")
        return file

    return replace
