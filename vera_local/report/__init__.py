"""Scores and transcripts for people: on the terminal and in files. Knows no model and does no scoring."""

from vera_local.report.files import Instrument, write_file, write_results, write_table, write_transcripts
from vera_local.report.terminal import by_group, matrix, summary_lines

__all__ = [
    "Instrument",
    "by_group",
    "matrix",
    "summary_lines",
    "write_file",
    "write_results",
    "write_table",
    "write_transcripts",
]
