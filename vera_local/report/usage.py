"""The work behind a run: rows of its record, their sums and what they come to. Knows no store and no engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from vera_local.engine.seam import NO_USAGE, Usage

ALL = 0
"""Stands for a session where several are added up."""

STAGES = "simulate", "judge", "check personas"
ROLES = "simulator", "chatbot", "judge"
"""As they are told. A record has them in the order of their first engines, which differs where stages overlap."""


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What one model was asked in one role of one stage in one session.

    `requests`: all, with those that `failed` or were `aborted` in flight; `usage`: tokens of all replies, of which
    `kept` are those behind what went into the store; `distinct`: prompt tokens that would have been computed had
    nothing been evicted from a KV cache (an estimate); `busy_s`: seconds with at least one request in flight.
    """

    session: int
    stage: str
    role: str
    model: str
    requests: int
    failed: int
    aborted: int
    usage: Usage
    distinct: int
    kept: Usage
    busy_s: float

    @property
    def tokens(self) -> Usage:
        """Those of all replies; of a chatbot that is none of our models, those that it told of."""
        return self.usage if self.requests else self.kept

    @property
    def unused(self) -> int:
        """Prompt tokens computed and tokens written for what did not go into the store."""
        return max(0, _worked(self.tokens) - _worked(self.kept))

    @property
    def amplification(self) -> float | None:
        """How often each distinct prompt token was computed, on average; None where nothing is known."""
        return self.usage.computed / self.distinct if self.distinct else None

    @property
    def rate(self) -> float | None:
        """Tokens computed and written for each second with a request in flight."""
        return _worked(self.usage) / self.busy_s if self.busy_s else None


@dataclass(frozen=True, slots=True)
class StageRow:
    """Seconds that a stage took in a session, and those of them with at least one request to any engine in flight."""

    session: int
    stage: str
    wall_s: float
    busy_s: float


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One process that worked on the run: when it began (UTC, ISO 8601), seconds until it ended or was last heard of,
    those of them with at least one request to any engine in flight, and the most memory that it and its children took,
    and that was in use on the GPUs, None where nobody knows. `restarts`: how often its engines were opened anew since
    one was lost. `part_of`: the session of the process that it worked for, at the same time as others; None: it worked
    for itself."""

    session: int
    started: str
    wall_s: float
    busy_s: float
    peak_memory_bytes: int | None
    peak_gpu_bytes: int | None
    restarts: int = 0
    part_of: int | None = None

    @property
    def whole(self) -> int:
        """The session that it is, or is a part of."""
        return self.session if self.part_of is None else self.part_of


@dataclass(frozen=True, slots=True)
class Work:
    """All that a run's sessions did; `ended`: conversations that came to an end; `gpus`: how many the machine has.

    `stored`: role -> tokens behind what the store holds, which were counted before there was a record, too.
    """

    sessions: tuple[SessionRow, ...]
    stages: tuple[StageRow, ...]
    rows: tuple[UsageRow, ...]
    stored: Mapping[str, Usage]
    ended: int
    gpus: int

    @property
    def wall_s(self) -> float:
        """Of all sessions; what parts of one took at the same time counts once."""
        return _longest((s.whole, s.wall_s) for s in self.sessions)

    @property
    def restarts(self) -> int:
        """How often engines were opened anew since one was lost, in all sessions."""
        return sum(s.restarts for s in self.sessions)

    @property
    def peak_memory_bytes(self) -> int | None:
        """Of our processes, in any session."""
        return max((s.peak_memory_bytes for s in self.sessions if s.peak_memory_bytes is not None), default=None)

    @property
    def peak_gpu_bytes(self) -> int | None:
        """In use on the GPUs, in any session."""
        return max((s.peak_gpu_bytes for s in self.sessions if s.peak_gpu_bytes is not None), default=None)

    @property
    def places(self) -> tuple[UsageRow, ...]:
        """What each model was asked in each role of each stage, in all sessions together."""
        found = dict.fromkeys((r.stage, r.role, r.model) for r in self.rows)
        names = sorted(found, key=lambda name: (_rank(name[0], STAGES), _rank(name[1], ROLES)))
        return tuple(_sum((r for r in self.rows if (r.stage, r.role, r.model) == name), *name) for name in names)

    @property
    def total(self) -> UsageRow:
        """All that engines of ours were asked; seconds in which several were busy count once."""
        return _sum(
            (r for r in self.rows if r.requests), "", "", "", _longest((s.whole, s.busy_s) for s in self.sessions)
        )

    @property
    def whole_stages(self) -> tuple[StageRow, ...]:
        """The stages in all sessions together."""
        whole = {s.session: s.whole for s in self.sessions}
        return tuple(
            StageRow(
                ALL,
                name,
                _longest((whole[s.session], s.wall_s) for s in same),
                _longest((whole[s.session], s.busy_s) for s in same),
            )
            for name in sorted(dict.fromkeys(s.stage for s in self.stages), key=lambda name: _rank(name, STAGES))
            for same in [[s for s in self.stages if s.stage == name]]
        )

    @property
    def gaps(self) -> tuple[str, ...]:
        """Roles of which the store holds more than was recorded; not a chatbot whose host we do not ask ourselves."""
        written = Counter[str]()
        for row in self.rows:
            written[row.role] += row.tokens.output
        recorded = {row.role for row in self.rows} | {"simulator", "judge"}
        return tuple(role for role, usage in self.stored.items() if role in recorded and usage.output > written[role])


def as_json(work: Work) -> dict[str, Any]:
    """Everything, each session by itself, too; seconds, bytes and tokens."""
    return {
        "wall_s": work.wall_s,
        "peak_memory_bytes": work.peak_memory_bytes,
        "peak_gpu_bytes": work.peak_gpu_bytes,
        "conversations": work.ended,
        "restarts": work.restarts,
        "stages": [_fields(s) for s in work.whole_stages],
        "usage": [_row(r) for r in work.places],
        "total": {k: v for k, v in _row(work.total).items() if k not in ("stage", "role", "model")},
        "stored": {role: asdict(usage) for role, usage in work.stored.items()},
        "without_record": list(work.gaps),
        "sessions": [
            asdict(s)
            | {"stages": [_fields(one) for one in work.stages if one.session == s.session]}
            | {"usage": [_row(r) for r in work.rows if r.session == s.session]}
            for s in work.sessions
        ],
    }


def _rank(name: str, order: Sequence[str]) -> int:
    """Its place there; behind all where it is none of them."""
    return order.index(name) if name in order else len(order)


def _worked(usage: Usage) -> int:
    return usage.computed + usage.output


def _longest(seconds: Iterable[tuple[int, float]]) -> float:
    """The longest of each session and its parts, which worked at the same time, added up."""
    found: dict[int, float] = {}
    for session, its in seconds:
        found[session] = max(its, found.get(session, 0.0))
    return sum(found.values())


def _sum(rows: Iterable[UsageRow], stage: str, role: str, model: str, busy_s: float | None = None) -> UsageRow:
    rows = tuple(rows)
    return UsageRow(
        session=ALL,
        stage=stage,
        role=role,
        model=model,
        requests=sum(r.requests for r in rows),
        failed=sum(r.failed for r in rows),
        aborted=sum(r.aborted for r in rows),
        usage=sum((r.usage for r in rows), NO_USAGE),
        distinct=sum(r.distinct for r in rows),
        kept=sum((r.kept for r in rows), NO_USAGE),
        busy_s=sum(r.busy_s for r in rows) if busy_s is None else busy_s,
    )


def _fields(stage: StageRow) -> dict[str, Any]:
    return {key: value for key, value in asdict(stage).items() if key != "session"}


def _row(row: UsageRow) -> dict[str, Any]:
    fields = {key: value for key, value in asdict(row).items() if key not in ("session", "usage", "kept")}
    tokens = {"tokens": asdict(row.tokens), "kept": asdict(row.kept), "unused": row.unused}
    return fields | tokens | {"amplification": row.amplification, "tokens_per_s": row.rate}
