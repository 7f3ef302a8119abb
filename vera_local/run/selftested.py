"""A judge card as the lines that a report shows of it. Knows no judge, and counts nothing."""

from __future__ import annotations

from collections.abc import Iterator

from vera_local.report.record import SelfTest, Tested
from vera_local.selftest import Card, headline
from vera_local.selftest.card import Accuracy, Share


def selftest_of(card: Card | None) -> SelfTest | None:
    """What a report says of a card; None where there is none."""
    if card is None:
        return None
    return SelfTest(headline(card), card.below_baseline, card.created, tuple(_lines(card)))


def _lines(card: Card) -> Iterator[Tested]:
    yield _right("Right, overall", card.overall)
    for dimension, accuracy in card.dimensions.items():
        yield _right(f"Right, {dimension}", accuracy)
    for kind, share in card.kinds.items():
        yield _share(f"Right, cases of kind {kind}", share)
    yield _share("Right answers turned by words to the judge in the chatbot's text", card.attacked)
    yield _share("Answers that changed with the order of the options", card.reversed)
    for key, share in card.master_keys.items():
        yield _share(f"Right about a reply without content: {key}", share)
    yield _share(f"Same answer all {card.repeats} times", card.repeated)
    yield _share("Named a turn that bears the answer out", card.evidence)
    yield _share("Answers marked uncertain", card.sureness.uncertain)
    yield _share("Right where certain", card.sureness.right_if_certain)
    yield _share("Right where uncertain", card.sureness.right_if_uncertain)


def _right(what: str, its: Accuracy) -> Tested:
    return Tested(what, its.right, its.n, its.accuracy, its.low, its.high, its.baseline)


def _share(what: str, its: Share) -> Tested:
    return Tested(what, its.count, its.n, its.share)
