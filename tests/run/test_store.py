"""What is put into the store comes back as it was, and what belongs together is kept together."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vera_local.bundle import DimensionRating
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.seam import NO_USAGE, Usage
from vera_local.errors import UserError
from vera_local.judge import Mode, State, Verdict
from vera_local.run.store import NAME, Store
from vera_local.simulate import Said

TWO = (Conversation("b-1", "b", 1), Conversation("a-1", "a", 1))


@given(texts=st.lists(st.text(), max_size=6))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("store")
    with Store.open(folder) as store:
        store.begin(TWO)
        for turn, text in enumerate(texts, 1):
            speaker = Speaker.PERSONA if turn % 2 else Speaker.CHATBOT
            store.add_message("a-1", turn, Said(Message(speaker, text), NO_USAGE, cut=False))
    with Store.open(folder) as again:
        first, second = again.conversations()
    assert (first.id, second.id) == ("b-1", "a-1"), "in the run's order"
    assert [m.text for m in second.messages] == texts


def test_a_goodbye_and_its_ending_are_one(tmp_path: Path) -> None:
    """Apart, a kill between them would make a resumed run talk on after the goodbye."""
    with Store.open(tmp_path) as store:
        store.begin(TWO)
        store.add_message("a-1", 1, Said(Message(Speaker.PERSONA, "bye"), NO_USAGE, cut=False, leaves=True))
        assert store.conversations()[1].ending is Ending.PERSONA


def test_a_record_is_entered_once_and_whole(tmp_path: Path) -> None:
    said = (Message(Speaker.PERSONA, "hi\r"), Message(Speaker.CHATBOT, ""))
    held = (Conversation("b-1", "b", 3, said, Ending.RECORDED), Conversation("a-1", "", 1, (), None))
    with Store.open(tmp_path) as store:
        store.record(held)
        assert store.conversations() == held
        store.record((Conversation("b-1", "other", 1, (Message(Speaker.CHATBOT, "other"),), Ending.ERROR),))
        assert store.conversations() == held
        assert set(store.usage().values()) == {NO_USAGE}


def test_verdicts_come_back_in_their_order(tmp_path: Path) -> None:
    given_ones = [
        Verdict("2", State.ANSWERED, "Yes", Mode.DIRECT, "Yes", usage=Usage(10, 5, 2)),
        Verdict("1", State.INVALID, None, Mode.DIRECT, "Perhaps", "none of the options"),
        Verdict("5", State.ANSWERED, "Not Relevant", Mode.AUTO),
    ]
    with Store.open(tmp_path) as store:
        store.begin(TWO)
        for place, verdict in enumerate(given_ones, 1):
            store.add_verdict("a-1", "judge", place, verdict)
        assert list(store.verdicts("a-1", "judge").values()) == given_ones
        assert store.verdicts("a-1", "another") == store.verdicts("b-1", "judge") == {}
        assert store.states() == {State.ANSWERED: 2, State.INVALID: 1}
        assert store.usage()["judge"] == Usage(10, 5, 2)


def test_unrated_stays_apart_from_every_word(tmp_path: Path) -> None:
    ratings = [DimensionRating("d", None, ("1",)), DimensionRating("e", "None", ())]
    with Store.open(tmp_path) as store:
        store.begin(TWO)
        store.set_ratings("a-1", "judge", ratings)
        assert [r for _, _, r in store.ratings()] == ratings
        assert store.rated("judge") == {"a-1"}


def test_only_what_failed_is_opened_again(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.begin(TWO)
        store.end("a-1", Ending.ERROR, "a hiccup")
        store.end("b-1", Ending.OVERFLOW, "too long")
        store.reopen_failed()
        assert [c.ending for c in store.conversations()] == [Ending.OVERFLOW, None]


def test_a_failed_walk_goes_back_to_its_first_failure_and_other_judges_keep_theirs(tmp_path: Path) -> None:
    """What came after a failure may lie on another path; another judge's ratings are none of this judge's business."""
    with Store.open(tmp_path) as store:
        store.begin(TWO)
        for judge in ("a judge", "another"):
            for place, state in enumerate((State.ANSWERED, State.ERROR, State.INVALID), 1):
                answer = "Yes" if state is State.ANSWERED else None
                store.add_verdict("b-1", judge, place, Verdict(str(place), state, answer, Mode.DIRECT))
            store.set_ratings("b-1", judge, [DimensionRating("d", None, ("2",))])
        assert store.rated("a judge") == frozenset()
        store.forget_failed("a judge")
        assert list(store.verdicts("b-1", "a judge")) == ["1"]
        assert [judge for _, judge, _ in store.ratings()] == ["another"]
        assert list(store.verdicts("b-1", "another")) == ["1", "2", "3"]


def test_faulty_replies_and_reasons_are_counted(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.begin(TWO)
        for turn, (text, cut) in enumerate([("hi", True), ("so", True), ("", False), (" ", False), ("oh", False)], 1):
            speaker = Speaker.PERSONA if turn == 1 else Speaker.CHATBOT
            store.add_message("a-1", turn, Said(Message(speaker, text), NO_USAGE, cut=cut))
        store.end("a-1", Ending.ERROR, "a hiccup")
        store.add_verdict("b-1", "j", 1, Verdict("1", State.OVERFLOW, None, Mode.DIRECT, "", "too long"))
        assert store.faulty_replies() == (4, 1, 2)
        assert store.reasons() == {"error": "a hiccup", "overflow": "too long"}


def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("something else entirely, and long enough to be a page of text" * 20, encoding="utf-8")
    with pytest.raises(UserError, match=r"Cannot use .*run\.sqlite \(file is not a database\)"):
        Store.open(tmp_path)
