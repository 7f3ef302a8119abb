"""Persona x chatbot -> conversation. Knows no rubric and no judge."""

from vera_local.simulate.converse import Ended, Setting, converse
from vera_local.simulate.fidelity import Rule
from vera_local.simulate.noted import NotedSimulator
from vera_local.simulate.simulator import Simulator
from vera_local.simulate.speech import MAX_WORDS, Rejected, Said

__all__ = ["MAX_WORDS", "Ended", "NotedSimulator", "Rejected", "Rule", "Said", "Setting", "Simulator", "converse"]
