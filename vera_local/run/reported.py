"""A run gathered for a report, from its results and its store. The one place that knows where each of them lies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vera_local.bundle import Bundle
from vera_local.conversation import Conversation
from vera_local.errors import UserError
from vera_local.report.reading import Opinion
from vera_local.report.record import Coefficient, Held, Record
from vera_local.report.simulation import SIMULATOR, Figures, by_simulator
from vera_local.report.verdicts import VerdictRow
from vera_local.run import manifest
from vera_local.run.agreeing import Asked, agree
from vera_local.run.cards import cards_of, warnings
from vera_local.run.cards import facts as card_facts
from vera_local.run.evaluate import must_hold_run, score_run
from vera_local.run.grouping import groupings
from vera_local.run.identities import simulators_of
from vera_local.run.juries import Bench
from vera_local.run.labels_file import Cleaning, Layout
from vera_local.run.parties import chatbot_of, instrument_of, judge_records, judges_in_order
from vera_local.run.played import played
from vera_local.run.publishing import bench_of
from vera_local.run.reproducing import again
from vera_local.run.stats import work_of
from vera_local.run.store import Store
from vera_local.run.verdicts import alike_between_judges, alike_in_repeats, row_of
from vera_local.score import UNKNOWN, Scores
from vera_local.score.alike import Share
from vera_local.score.intervals import Interval, Undefined
from vera_local.score.raters import POOLED, Finding, Section

SCORES = "scores.json"


@dataclass(frozen=True)
class _Stored:
    """What the store of a run holds, read in one go."""

    conversations: tuple[Conversation, ...]
    rows: tuple[VerdictRow, ...]
    bench: Bench
    simulators: Figures
    repeats: Mapping[str, Share]
    replies: tuple[int, int, int]
    reasons: Mapping[str, str]


def record_of(folder: Path, bundle: Bundle, by: Sequence[str] = ()) -> Record:
    """Score the run in `folder` once more and gather all of it; `by`: further persona columns.

    The columns that its results were scored by before stay. UserError where the folder holds no run, or another
    process is at work in it.
    """
    begun = must_hold_run(folder)
    columns = dict.fromkeys((*_scored_by(folder, bundle), *by))
    score_run(folder, bundle, groupings(bundle, columns))
    stored, cards = _read(folder, bundle), cards_of(folder, bundle)
    made = again(begun)
    return Record(
        name=folder.resolve().name,
        created=str(begun.get("created", "")),
        instrument=instrument_of(bundle),
        chatbot=chatbot_of(begun),
        players=simulators_of(begun["identity"]),
        judges=tuple(judge_records(stored.bench, (row.judge for row in stored.rows), begun["judges"], cards)),
        conversations=tuple(_held(stored, bundle)),
        scores=read_scores(folder),
        manifest=begun,
        commands=made.commands,
        config=made.config,
        alike=alike_between_judges(stored.bench),
        repeats=stored.repeats,
        agreement=tuple(_agreement(folder, stored.bench)),
        simulators=stored.simulators,
        replies=stored.replies,
        reasons=stored.reasons,
        work=work_of(folder),
        warnings=warnings({judge: card_facts(card) for judge, card in cards.items()}),
        demonstration=manifest.demonstrates(folder),
    )


def read_scores(folder: Path) -> dict[str, Scores]:
    """Judge -> scores, as scores.json has them; none where there is no such file yet.

    UserError where it is not whole, or is of another version.
    """
    file = folder / SCORES
    try:
        judges = json.loads(file.read_text(encoding="utf-8"))["judges"]
        return {judge: Scores.model_validate(its) for judge, its in judges.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(
            f"{file}: cannot be read, is of another version or not whole; `vera-local score {folder}` writes it anew"
        ) from None


def _scored_by(folder: Path, bundle: Bundle) -> list[str]:
    """The persona columns that the results were scored by; none where these cannot be read, and are made anew."""
    try:
        columns = {column for its in read_scores(folder).values() for column in its.by}
    except UserError:
        return []
    return sorted(columns & bundle.personas[0].fields.keys() - {SIMULATOR})


def _read(folder: Path, bundle: Bundle) -> _Stored:
    with Store.open(folder) as store:
        judges, simulators = bench_of(folder, bundle, store), manifest.simulator_of_repeat(folder)
        return _Stored(
            conversations=tuple(store.conversations()),
            rows=tuple(row_of(given, bundle.rubric) for given in store.all_verdicts()),
            bench=judges,
            simulators=by_simulator(played(store.simulated, store.heads(), simulators)),
            repeats=alike_in_repeats(judges, store),
            replies=store.faulty_replies(),
            reasons=store.reasons(),
        )


def _held(stored: _Stored, bundle: Bundle) -> Iterator[Held]:
    groups = {persona.name: persona.group for persona in bundle.personas}
    by_walk: dict[tuple[str, str], list[VerdictRow]] = {}
    for row in stored.rows:
        by_walk.setdefault((row.conversation, row.judge), []).append(row)
    judges = judges_in_order(stored.bench, (row.judge for row in stored.rows))
    for place, c in enumerate(stored.conversations, 1):
        opinions = tuple(_opinion(stored.bench, by_walk, c.id, judge) for judge in judges)
        yield Held(place, c, groups.get(c.persona, UNKNOWN), opinions)


def _opinion(
    bench: Bench, by_walk: Mapping[tuple[str, str], list[VerdictRow]], conversation: str, judge: str
) -> Opinion:
    return Opinion(
        judge=judge,
        ratings=bench.ratings.get(judge, {}).get(conversation, ()),
        rows=tuple(by_walk.get((conversation, judge), ())),
        members=bench.juries.get(judge, ()),
    )


def _agreement(folder: Path, bench: Bench) -> Iterable[Coefficient]:
    """Coefficients among the judges, all dimensions together; none where no two rated the same."""
    if len(bench.judges) < 2:
        return ()
    try:
        agreed = agree(Asked(None, (folder,), Layout((), ()), Cleaning(), raters=bench.judges))
    except UserError:
        return ()
    pooled = [f for f in agreed.report.findings if f.dimension == POOLED and f.section is not Section.REFERENCE]
    return map(_coefficient, pooled)


def _coefficient(f: Finding) -> Coefficient:
    value = None if isinstance(f.value, Undefined) else float(f.value)
    low, high = (f.interval.low, f.interval.high) if isinstance(f.interval, Interval) else (None, None)
    reasons = [part.reason for part in (f.value, f.interval) if isinstance(part, Undefined)]
    subject = "all judges" if f.section is Section.AMONG else f.subject
    return Coefficient(subject, f.statistic, f.n, value, low, high, "; ".join(reasons[:1]))
