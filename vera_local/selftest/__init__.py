"""A judge tried on transcripts whose right answers are known. Knows no run."""

from vera_local.selftest.askings import Sitting, sittings
from vera_local.selftest.card import Card, Instrument
from vera_local.selftest.cards import keep, kept, write
from vera_local.selftest.markdown import headline, page, summary_of
from vera_local.selftest.marks import Answered, marks
from vera_local.selftest.perform import perform

__all__ = [
    "Answered",
    "Card",
    "Instrument",
    "Sitting",
    "headline",
    "keep",
    "kept",
    "marks",
    "page",
    "perform",
    "sittings",
    "summary_of",
    "write",
]
