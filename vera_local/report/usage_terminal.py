"""The record of a run's work as tables and lines for the terminal. Computes nothing that the record has not."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from vera_local.engine.seam import Usage
from vera_local.report.layout import NONE, duration, plain_table
from vera_local.report.usage import StageRow, UsageRow, Work

LEGEND = (
    "Cached: prompt tokens that were read from the KV cache. Unused: computed and written for what did not go into "
    "the store: look-ahead past a branch, messages that could not stand, goodbyes without a word, and what a stop "
    "lost. Failed and aborted requests tell no tokens.",
    "Distinct: prompt tokens had nothing ever been evicted from the cache (an estimate); amplification: computed / "
    "distinct. Busy: with at least one request in flight. Tokens/s: computed and written in that time.",
)

UNRECORDED = (
    "No usage was recorded: this run was made by a version that kept no account of it. What is in its store cost:"
)

UNASKED = "No model was asked anything for this run so far."


def recorded(work: Work) -> list[Table | str]:
    """Who was asked what, how long it took, and what else is known."""
    return [
        _asked(work),
        "",
        _worked(work),
        "",
        *LEGEND,
        "",
        *_times(work),
        *restart_lines(work.restarts),
        *_memory(work),
        *_silent(work),
        *_gaps(work),
    ]


def restart_lines(restarts: int) -> list[str]:
    """That engines were lost under the run, where they were."""
    told = f"Engines opened anew since one was lost: {restarts} times; what was under way was asked again."
    return [told] if restarts else []


def unrecorded(work: Work) -> list[str]:
    """What the store alone tells of a run without a record."""
    if not any(usage.prompt or usage.output for usage in work.stored.values()):
        return [UNASKED]
    return [UNRECORDED, *(f"  {role}: {_tokens(usage)}" for role, usage in work.stored.items())]


def _asked(work: Work) -> Table:
    table = plain_table("Asked", ["Requests", "Failed", "Aborted", "Prompt", "Cached", "Output", "Unused"])
    for row in _rows(work):
        ours = [str(n) for n in (row.requests, row.failed, row.aborted)] if row.requests else [NONE] * 3
        tokens, cached = row.tokens, _share(row.tokens.cached, row.tokens.prompt)
        table.add_row(_name(row), *ours, short(tokens.prompt), cached, short(tokens.output), short(row.unused))
    return table


def _worked(work: Work) -> Table:
    table = plain_table("Engines", ["Computed", "Distinct", "Amplification", "Busy", "of wall", "Tokens/s"])
    walls = {s.stage: s.wall_s for s in work.whole_stages} | {"": work.wall_s}
    for row in _rows(work):
        if row.requests:
            busy, of_wall = duration(row.busy_s), _share(row.busy_s, walls.get(row.stage, 0.0))
            counts = short(row.usage.computed), short(row.distinct), _ratio(row.amplification)
            table.add_row(_name(row), *counts, busy, of_wall, NONE if row.rate is None else f"{row.rate:.0f}")
    return table


def _rows(work: Work) -> list[UsageRow]:
    return [*work.places, *([work.total] if len(work.places) > 1 else [])]


def _name(row: UsageRow) -> Text:
    return Text(f"{row.stage}: {row.role}\n  {row.model}" if row.stage else "all")


def _times(work: Work) -> list[str]:
    sessions = len({row.session for row in work.rows})
    several = f" in {sessions} sessions" if sessions > 1 else ""
    stages = [_stage(stage) for stage in work.whole_stages]
    return [f"Wall time: {duration(work.wall_s)}{several}, with starting engines.", *stages]


def _stage(stage: StageRow) -> str:
    return f"  {stage.stage}: {duration(stage.wall_s)}, engines busy {_share(stage.busy_s, stage.wall_s)} of it"


def _memory(work: Work) -> list[str]:
    ours, gpus = work.peak_memory_bytes, work.peak_gpu_bytes
    lines = []
    if ours is not None:
        lines.append(f"Peak memory: {ours / 1e9:.2f} GB in our processes (what they share counts in each).")
    if gpus is not None:
        lines.append(f"Peak GPU memory: {gpus / 1e9:.2f} GB in use on the GPUs, by all programs.")
    return lines


def _silent(work: Work) -> list[str]:
    """Whose host may keep it to itself."""
    silent = [f"{row.role} ({row.model})" for row in work.places if row.requests and not row.usage.cached]
    if not silent:
        return []
    return [
        f"No cached tokens were told of by the host of {', '.join(silent)}; if it has a cache and does not tell, "
        "computed and amplification are too large."
    ]


def _gaps(work: Work) -> list[str]:
    if not work.gaps:
        return []
    told = "; ".join(f"{role}: {_tokens(work.stored[role])}" for role in work.gaps)
    return [
        f"Part of the run is without a record (of an older version, or lost in a stop). The store holds in all: {told}."
    ]


def _tokens(usage: Usage) -> str:
    return f"{usage.prompt:,} prompt tokens ({usage.cached:,} cached), {usage.output:,} written"


def short(count: int) -> str:
    """A count in at most six characters."""
    if count < 10_000:
        return str(count)
    return f"{count / 1e3:.0f} k" if count < 1e6 else f"{count / 1e6:.1f} M"


def _ratio(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def _share(part: float, whole: float) -> str:
    return NONE if not whole else f"{100 * part / whole:.1f}%"
