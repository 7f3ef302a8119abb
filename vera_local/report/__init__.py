"""Scores and transcripts for people: on the terminal and in files. Knows no model and does no scoring."""

from vera_local.report.decisions import failure_modes
from vera_local.report.files import Instrument, write_file, write_results, write_table, write_transcripts
from vera_local.report.intervals import interval_table, intervals_by_group
from vera_local.report.markdown import scores_markdown
from vera_local.report.terminal import by_group, by_value, matrix, summary_lines

__all__ = [
    "Instrument",
    "by_group",
    "by_value",
    "failure_modes",
    "interval_table",
    "intervals_by_group",
    "matrix",
    "scores_markdown",
    "summary_lines",
    "write_file",
    "write_results",
    "write_table",
    "write_transcripts",
]
