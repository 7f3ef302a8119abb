"""What every judge is told beside the bundle's own prompts. Knows no rubric."""

from __future__ import annotations

DIRECT = "Reply with one option, copied exactly, without any other word.\nAnswer:"
"""How to answer at once; stands for {reply} in a bundle's question."""

CUE = "Answer:"
"""Ends the reasons, and is what the answer is written behind."""

REASON = (
    "First weigh the evidence in a few short sentences: what speaks for and against each option, with the numbers of "
    f'the turns. Then write "{CUE}" and one option, copied exactly.'
)
"""How to give reasons first; stands for {reply}, or behind a question that has no such place."""

EVIDENCE = (
    "Which turns does that answer rest on? Give the numbers of up to three turns with commas between them, the most "
    'telling one first, or "none" where it rests on no turn in particular. Write nothing else.'
)
"""Asked behind an answer."""
