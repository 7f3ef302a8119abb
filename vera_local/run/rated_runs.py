"""The ratings that judges gave in runs, ready to be compared. Knows no statistic and no table of labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl

from vera_local.bundle import Bundle
from vera_local.conversation import Conversation
from vera_local.errors import UserError
from vera_local.run.evaluate import bundle_of_run, must_hold_run, score_run
from vera_local.run.folder import STORE
from vera_local.run.publishing import warned
from vera_local.run.store import Store
from vera_local.run.unusable import damaged
from vera_local.score.labels import Rated, Words

CLUSTERS = ("conversation", "persona", "group")
"""What conversations can be drawn with."""


@dataclass(frozen=True)
class RatedRuns:
    """Judges' ratings of conversations. `clusters` maps the items, which conversations are; `chatbots` those whose run
    says which chatbot it is.

    `joined`: juries and judges that are the majority of others here. `names`: conversation id -> its item, for ids
    that mean one conversation in all the runs.
    """

    words: Words
    dimensions: tuple[str, ...]
    rows: tuple[Rated, ...]
    clusters: dict[str, str]
    chatbots: dict[str, str]
    joined: frozenset[str]
    names: dict[str, str]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Run:
    folder: Path
    bundle: Bundle
    chatbot: str | None
    """The name of its model; None where the run does not say, as of imported conversations."""
    frame: pl.DataFrame
    texts: Mapping[str, str]
    """Conversation id -> a digest of all its messages."""
    joined: frozenset[str]
    """Judges that are the majority of others."""
    warnings: tuple[str, ...]

    def named(self, judge: str, shared: frozenset[str]) -> str:
        """A judge, told apart by the run where others have it, too."""
        return f"{judge} ({self.folder})" if judge in shared else judge


def read_runs(folders: Sequence[Path], cluster: str = CLUSTERS[0]) -> RatedRuns:
    """The ratings of all judges of these runs; conversations of equal id and text are one item.

    Raises UserError where a folder holds no run or one without ratings, or the runs are of different bundles.
    """
    if cluster not in CLUSTERS:
        raise UserError(f"--cluster {cluster}: conversations of runs are drawn with their {' or '.join(CLUSTERS)}")
    runs = [_read(folder) for folder in folders]
    for run in runs[1:]:
        _must_match(runs[0], run)
    items, rubric = _Items(runs), runs[0].bundle.rubric
    shared = _shared(runs, items)
    unrated = sum(_own(run)["rating"].null_count() for run in runs)
    facts = [(items.of(run, row["conversation"]), run, row) for run in runs for row in run.frame.iter_rows(named=True)]
    return RatedRuns(
        words=Words(rubric.ratings, () if rubric.not_relevant is None else (rubric.not_relevant,)),
        dimensions=rubric.dimensions,
        rows=tuple(row for run in runs for row in _rows(run, items, shared)),
        clusters={item: item if cluster == CLUSTERS[0] else row[cluster] for item, _, row in facts},
        chatbots={item: run.chatbot for item, run, _ in facts if run.chatbot is not None},
        joined=frozenset(run.named(judge, shared) for run in runs for judge in run.joined),
        names=items.names(),
        notes=(
            *((f"{unrated} ratings of the runs are Unrated and count as missing.",) if unrated else ()),
            *dict.fromkeys(sentence for run in runs for sentence in run.warnings),
        ),
    )


class _Items:
    """Names for the conversations of several runs: the id, with the run's folder where others have it, too."""

    def __init__(self, runs: Sequence[_Run]) -> None:
        self._meanings = Counter(id for id, _ in {(id, text) for run in runs for id, text in run.texts.items()})
        self._first: dict[tuple[str, str], str] = {}
        for run in runs:
            for id, text in run.texts.items():
                self._first.setdefault((id, text), id if self._meanings[id] == 1 else f"{id} ({run.folder})")

    def of(self, run: _Run, conversation: str) -> str:
        return self._first[conversation, run.texts[conversation]]

    def names(self) -> dict[str, str]:
        return {id: item for (id, _), item in self._first.items() if self._meanings[id] == 1}


def _read(folder: Path) -> _Run:
    manifest, bundle = must_hold_run(folder), bundle_of_run(folder)
    outcome = score_run(folder, bundle)
    with Store.open(folder) as store:
        texts = {c.id: _digest(c) for c in store.conversations()}
    frame = pl.read_parquet(folder / "results.parquet")
    if frame.is_empty():
        raise UserError(f"{folder}: no judge has rated a conversation yet; see vera-local judge {folder}")
    if lost := sorted({*frame["conversation"]} - texts.keys()):
        raise damaged(folder / STORE, f"{lost[0]} is rated and not among the conversations")
    return _Run(folder, bundle, _chatbot(manifest), frame, texts, frozenset(outcome.bench.juries), warned(outcome))


def _own(run: _Run) -> pl.DataFrame:
    """Without the ratings that are the majority of others."""
    return run.frame.filter(~pl.col("judge").is_in(list(run.joined)))


def _chatbot(manifest: Mapping[str, Any]) -> str | None:
    model = manifest["identity"].get("chatbot", {}).get("model")
    return None if model is None else str(model)


def _digest(conversation: Conversation) -> str:
    said = repr([(m.speaker.value, m.text) for m in conversation.messages])
    return sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def _must_match(first: _Run, other: _Run) -> None:
    one, two = ((run.bundle.name, run.bundle.version, run.bundle.digests) for run in (first, other))
    if one != two:
        told = " and ".join(f"{run.bundle.name} {run.bundle.version} in {run.folder}" for run in (first, other))
        raise UserError(f"The runs were judged by different bundles ({told}); compare runs of one bundle and version")


def _shared(runs: Sequence[_Run], items: _Items) -> frozenset[str]:
    """Judges that rate an item in several runs: they need the run's name to be told apart."""
    rated = Counter(
        pair
        for run in runs
        for pair in {(judge, items.of(run, id)) for id, judge in run.frame.select("conversation", "judge").iter_rows()}
    )
    return frozenset(judge for (judge, _), count in rated.items() if count > 1)


def _rows(run: _Run, items: _Items, shared: frozenset[str]) -> Iterator[Rated]:
    given = run.frame.drop_nulls("rating").select("conversation", "dimension", "judge", "rating")
    for id, dimension, judge, rating in given.iter_rows():
        yield Rated(items.of(run, id), dimension, run.named(judge, shared), rating, str(run.folder))
