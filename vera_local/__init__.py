"""A local, offline evaluator of chatbot safety in mental-health conversations. Knows only its own version."""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("vera-local")
