"""A judge card as a page to read. Knows no file and counts nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from vera_local.report.markdown import head, row
from vera_local.selftest.card import Accuracy, Card, Share

NO_DATA = "no data"

LIMITS = (
    "The cases are this project's own short transcripts with clear answers, not clinically validated. A judge that "
    "does well here can still be wrong about real conversations; one that does badly should not be relied on."
)


def page(card: Card) -> str:
    """The card in Markdown."""
    return "\n".join(_lines(card)) + "\n"


def headline(card: Card) -> str:
    """The most important of it in one sentence."""
    turned = card.attacked
    return f"{_against(card.overall)}, {turned.count} of {turned.n} right answers turned by attacks: {card.standing}"


def summary_of(card: Card) -> list[str]:
    """The numbers that matter most, a line each."""
    tricks = {
        "Right about replies without content": _together(card.master_keys.values()),
        "Answers that changed with the order of the options": card.reversed,
        "Right answers turned by words to the judge in the chatbot's text": card.attacked,
        f"Same answer all {card.repeats} times": card.repeated,
        "Named a turn that bears the answer out": card.evidence,
        "Answers marked uncertain": card.sureness.uncertain,
    }
    accuracies = {**card.dimensions, "Overall": card.overall}
    return [
        f"Self-test of {card.judge} with {card.bundle.name} {card.bundle.version}",
        *(f"  {name}: {_against(its)}" for name, its in accuracies.items()),
        *(f"  {what}: {its.count} of {its.n} ({percent(its.share)})" for what, its in tricks.items()),
        *([f"  Without an answer: {_counts(card.missing)}"] if card.missing else []),
        f"{_capital(card.standing)}.",
    ]


def _together(shares: Collection[Share]) -> Share:
    return Share.of(sum(its.count for its in shares), sum(its.n for its in shares))


def _against(its: Accuracy) -> str:
    return f"{its.right} of {its.n} right ({percent(its.accuracy)}; a constant judge {percent(its.baseline)})"


def percent(share: float | None) -> str:
    """A share between 0 and 1 in percent."""
    return NO_DATA if share is None else f"{100 * share:.1f} %"


def _lines(card: Card) -> Iterator[str]:
    yield f"# Judge card: {card.judge}, {card.bundle.name} {card.bundle.version}"
    yield from ("", f"**{_capital(card.standing)}.**", "", LIMITS, "")
    yield from _facts(card)
    yield from _accuracy(card)
    yield from _tricks(card)
    yield from _sureness(card)


def _facts(card: Card) -> Iterator[str]:
    yield from _table(
        ("What", "Value"),
        [
            ("Model", card.title),
            ("Mode", card.mode),
            ("Temperature", f"{card.temperature:g}"),
            ("Times each question was asked", str(card.repeats)),
            ("Questions asked, all variants", str(card.askings)),
            ("Without an answer", _counts(card.missing)),
            ("vera-local", card.vera_local),
            ("Made", card.created),
            ("Judge's fingerprint", f"`{card.identity}`"),
            ("Digest of the self-test", f"`{card.bundle.selftest}`"),
            *((f"Digest of {name}", f"`{digest}`") for name, digest in card.bundle.digests.items()),
        ],
    )


def _accuracy(card: Card) -> Iterator[str]:
    yield from ("", "## Accuracy", "")
    rows = [*card.dimensions.items(), ("**Overall**", card.overall)]
    header = ("Dimension", "Right", "Accuracy", "95 % interval", "Constant judge")
    yield from _table(header, [(name, *_cells(its)) for name, its in rows])
    yield from (
        "",
        "A missing answer counts as wrong. The constant judge gives each question one answer, the one that is right "
        "most often, without reading anything.",
        "",
    )
    yield from _shares("Kind of case", "Right", card.kinds)


def _cells(its: Accuracy) -> tuple[str, ...]:
    interval = f"{percent(its.low)} to {percent(its.high)}"
    return f"{its.right} of {its.n}", percent(its.accuracy), interval, percent(its.baseline)


def _tricks(card: Card) -> Iterator[str]:
    yield from ("", "## What turns it", "")
    yield from _shares(
        "Variation",
        "Answers that changed",
        {"Options listed in reverse order": card.reversed},
    )
    yield from ("", "Of the answers that were right without it, those that an instruction turned as it wished:", "")
    yield from _shares("Instruction in the chatbot's text", "Turned", {**card.attacks, "**All**": card.attacked})
    yield from ("", "Replies without content in the chatbot's place:", "")
    yield from _shares("Reply", "Right", {f"`{key}`": its for key, its in card.master_keys.items()})


def _sureness(card: Card) -> Iterator[str]:
    sure = card.sureness
    yield from ("", "## How sure it is", "")
    yield from _shares(
        "What",
        "Count",
        {
            f"Same answer all {card.repeats} times": card.repeated,
            "Named a turn that bears the answer out": card.evidence,
            "Answers marked uncertain": sure.uncertain,
            "Right where certain": sure.right_if_certain,
            "Right where uncertain": sure.right_if_uncertain,
        },
    )
    yield from ("", f"Mean probability that the options hold together: {percent(sure.mass)}.")


def _shares(first: str, second: str, shares: Mapping[str, Share]) -> Iterator[str]:
    rows = [(name, f"{its.count} of {its.n}", percent(its.share)) for name, its in shares.items()]
    yield from _table((first, second, "Share"), rows)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield from head(header, len(header))
    yield from (row([" ".join(cell.split()) for cell in cells]) for cells in rows)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {what}" for what, n in counts.items()) or "none"


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
