"""Conversations that were held elsewhere, as text in known formats. Knows no file system, no persona and no run."""

from vera_local.transcripts.jsonl import read_jsonl
from vera_local.transcripts.names import Named, file_stems, read_name
from vera_local.transcripts.recording import Recording
from vera_local.transcripts.table import read_table
from vera_local.transcripts.text import read_text, why_not_text, write_text

__all__ = [
    "Named",
    "Recording",
    "file_stems",
    "read_jsonl",
    "read_name",
    "read_table",
    "read_text",
    "why_not_text",
    "write_text",
]
