"""The parties to a run as a report names them: instrument, chatbot, judges. Knows no store and no page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vera_local.bundle import Bundle
from vera_local.judge.jury import JURY, RULE
from vera_local.report.record import Instrument, JudgeRecord
from vera_local.run.juries import Bench
from vera_local.run.selftested import selftest_of
from vera_local.selftest import Card

UNNAMED = "Unnamed chatbot"
"""Who held conversations whose record does not say it."""


def chatbot_of(manifest: Mapping[str, Any]) -> str:
    """What the chatbot under test is called."""
    return str(manifest["identity"].get("chatbot", {}).get("model") or UNNAMED)


def instrument_of(bundle: Bundle) -> Instrument:
    """What a report tells of a bundle."""
    return Instrument(bundle.name, bundle.title, bundle.version, bundle.notice, bundle.group_column, bundle.rubric)


def judges_in_order(bench: Bench, others: Iterable[str] = ()) -> tuple[str, ...]:
    """Those that join others first, the jury before all: their ratings are what a run comes to."""
    joined = sorted(bench.juries, key=lambda name: name != JURY)
    return tuple(dict.fromkeys((*joined, *bench.judges, *bench.ratings, *others)))


def judge_records(
    bench: Bench,
    others: Iterable[str],
    identities: Mapping[str, Mapping[str, Any]],
    cards: Mapping[str, Card | None],
) -> Iterator[JudgeRecord]:
    """The judges of the bench, `others` that gave a verdict, and those that were entered and gave none yet."""
    for name in judges_in_order(bench, (*others, *identities)):
        its = identities.get(name, {})
        yield JudgeRecord(
            name=name,
            model=str(its.get("model", name)),
            mode=str(its.get("mode", "")),
            members=bench.juries.get(name, ()),
            rule=RULE if name in bench.juries else "",
            selftest=selftest_of(cards.get(its.get("judge", name))),
        )
