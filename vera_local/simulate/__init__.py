"""Persona x chatbot -> conversation. Knows no rubric and no judge."""

from vera_local.simulate.converse import Ended, Said, Setting, converse
from vera_local.simulate.noted import NotedSimulator
from vera_local.simulate.simulator import Simulator

__all__ = ["Ended", "NotedSimulator", "Said", "Setting", "Simulator", "converse"]
