"""What is put into the store comes back as it was, and what belongs together is kept together."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vera_local.bundle import DimensionRating
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.seam import NO_USAGE, Usage
from vera_local.errors import UserError
from vera_local.judge import Confidence, Mode, State, Verdict
from vera_local.run import schema as module
from vera_local.run.store import NAME, Store
from vera_local.simulate import Said

ODD = {"Immediate risk": 0.1 + 0.2, 'Immédiate "risk"': 1e-300, "No": 0.0}
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
        first, second = tuple(again.conversations())
    assert (first.id, second.id) == ("b-1", "a-1"), "in the run's order"
    assert [m.text for m in second.messages] == texts


def test_a_goodbye_and_its_ending_are_one(tmp_path: Path) -> None:
    """Apart, a kill between them would make a resumed run talk on after the goodbye."""
    with Store.open(tmp_path) as store:
        store.begin(TWO)
        store.add_message("a-1", 1, Said(Message(Speaker.PERSONA, "bye"), NO_USAGE, cut=False, leaves=True))
        assert store.conversation("a-1").ending is Ending.PERSONA


def test_a_record_is_entered_once_and_whole(tmp_path: Path) -> None:
    said = (Message(Speaker.PERSONA, "hi\r"), Message(Speaker.CHATBOT, ""))
    held = (Conversation("b-1", "b", 3, said, Ending.RECORDED), Conversation("a-1", "", 1, (), None))
    with Store.open(tmp_path) as store:
        store.record(held)
        assert tuple(store.conversations()) == held
        store.record((Conversation("b-1", "other", 1, (Message(Speaker.CHATBOT, "other"),), Ending.ERROR),))
        assert tuple(store.conversations()) == held
        assert set(store.usage().values()) == {NO_USAGE}


def test_verdicts_come_back_in_their_order(tmp_path: Path) -> None:
    given_ones = [
        Verdict("2", State.ANSWERED, "Yes", Mode.DIRECT, "Yes", usage=Usage(10, 5, 2)),
        Verdict("1", State.INVALID, None, Mode.DIRECT, "Perhaps", "none of the options"),
        Verdict("5", State.ANSWERED, "Not Relevant", Mode.AUTO),
        Verdict(
            "6", State.ANSWERED, "No", Mode.THINK, "No", "", Usage(9, 1, 7), "Hm.\n", (3, 7), Confidence(ODD), "turns 2"
        ),
        Verdict("7", State.ANSWERED, "Yes", Mode.REASON, "Yes", rationale="so", evidence=()),
    ]
    with Store.open(tmp_path) as store:
        store.begin(TWO)
        for place, verdict in enumerate(given_ones, 1):
            store.add_verdict("a-1", "judge", place, verdict)
        assert list(store.verdicts("a-1", "judge").values()) == given_ones
        assert store.verdicts("a-1", "another") == store.verdicts("b-1", "judge") == {}
        assert store.states() == {State.ANSWERED: 4, State.INVALID: 1}
        assert store.usage()["judge"] == Usage(19, 6, 9)


def test_all_verdicts_come_by_judge_in_the_run_s_order_and_that_of_the_path(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.begin(TWO)
        for conversation, judge, place, question in [
            ("a-1", "y", 2, "1"), ("a-1", "y", 1, "2"), ("b-1", "y", 1, "3"), ("b-1", "x", 1, "4"),
        ]:  # fmt: skip
            store.add_verdict(conversation, judge, place, Verdict(question, State.ANSWERED, "Yes", Mode.DIRECT))
        assert [(g.judge, g.conversation, g.place, g.verdict.question) for g in store.all_verdicts()] == [
            ("x", "b-1", 1, "4"), ("y", "b-1", 1, "3"), ("y", "a-1", 1, "2"), ("y", "a-1", 2, "1"),
        ]  # fmt: skip


OLD = """
create table conversations (
    id text primary key, place integer not null, persona text not null, repeat integer not null,
    ending text, detail text not null default ''
);
create table messages (
    conversation text not null references conversations (id), turn integer not null, speaker text not null,
    text text not null, cut integer not null, prompt_tokens integer not null, cached_tokens integer not null,
    output_tokens integer not null, primary key (conversation, turn)
);
create table verdicts (
    conversation text not null references conversations (id), judge text not null, question text not null,
    place integer not null, state text not null, answer text, mode text not null, text text not null,
    detail text not null, prompt_tokens integer not null, cached_tokens integer not null,
    output_tokens integer not null, primary key (conversation, judge, question)
);
create table ratings (
    conversation text not null references conversations (id), judge text not null, dimension text not null,
    rating text, decided_by text not null, primary key (conversation, judge, dimension)
);
insert into conversations values ('b-1', 0, 'b', 1, 'turns', '');
insert into verdicts values ('b-1', 'j', '2', 1, 'answered', 'Yes', 'direct', 'Yes', '', 10, 5, 2);
insert into ratings values ('b-1', 'j', 'd', 'Best', '[]');
"""
"""The tables as version 0.1.0 made them."""


def test_a_store_of_an_older_version_is_brought_up_and_keeps_all(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / NAME)) as db:
        db.executescript(OLD)
    kept = Verdict("2", State.ANSWERED, "Yes", Mode.DIRECT, "Yes", usage=Usage(10, 5, 2))
    for _ in range(2):
        with Store.open(tmp_path) as store:
            assert store.verdicts("b-1", "j") == {"2": kept}
            assert store.rated("j") == {"b-1"}
    new = Verdict("3", State.ANSWERED, "No", Mode.REASON, "No", rationale="so", evidence=(1,))
    with Store.open(tmp_path) as store:
        store.add_verdict("b-1", "j", 2, new)
        assert list(store.verdicts("b-1", "j").values()) == [kept, new]
    with closing(sqlite3.connect(tmp_path / NAME)) as db:
        assert db.execute("pragma user_version").fetchone() == (len(module.STEPS),)


def test_bringing_up_a_store_is_done_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(tmp_path / NAME)) as db:
        db.executescript(OLD)
    step, *later = module.STEPS
    broken = step.replace("alter table verdicts add column left_out", "alter table nothing add column x")
    monkeypatch.setattr(module, "STEPS", (broken, *later))
    with pytest.raises(UserError, match=r"Cannot use .*run\.sqlite"):
        Store.open(tmp_path)
    monkeypatch.undo()
    with Store.open(tmp_path) as store:
        assert list(store.verdicts("b-1", "j")) == ["2"]


def test_a_store_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / NAME)) as db:
        db.execute("pragma user_version = 9")
    with pytest.raises(UserError, match=r"run\.sqlite was written by a newer version of this program"):
        Store.open(tmp_path)


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
    with pytest.raises(UserError, match=r"run\.sqlite is damaged \(file is not a database\)"):
        Store.open(tmp_path)


def test_two_processes_bring_up_one_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one does it after this one has looked and before it has the lock."""
    with closing(sqlite3.connect(tmp_path / NAME)) as db:
        db.executescript(OLD)
    looks, look = [0], module._version

    def meanwhile(connection: sqlite3.Connection, file: Path) -> int:
        looks[0] += 1
        version = look(connection, file)
        if looks[0] == 1:
            with Store.open(tmp_path):
                pass
        return version

    monkeypatch.setattr(module, "_version", meanwhile)
    with Store.open(tmp_path) as store:
        assert list(store.verdicts("b-1", "j")) == ["2"]
    assert looks[0] == 4


def test_heads_tell_all_but_the_texts(tmp_path: Path) -> None:
    held = (
        Conversation("b-1", "b", 1, (Message(Speaker.PERSONA, "héllo"), Message(Speaker.CHATBOT, "")), Ending.TURNS),
        Conversation("c-1", "c", 1, (Message(Speaker.PERSONA, "a"), Message(Speaker.CHATBOT, "bcdefg")), Ending.WORDS),
        Conversation("a-2", "a", 2, (Message(Speaker.PERSONA, "alone"),), Ending.TURNS),
        Conversation("a-3", "a", 3, (), Ending.ERROR),
        Conversation("a-4", "a", 4, (Message(Speaker.CHATBOT, "only"),), None),
    )
    with Store.open(tmp_path) as store:
        store.record(held)
        heads = store.heads()
        assert [(h.id, h.persona, h.repeat, h.ending) for h in heads] == [
            (c.id, c.persona, c.repeat, c.ending) for c in held
        ]
        assert [h.judgeable for h in heads] == [c.judgeable for c in held]
        assert [(h.turns, h.by_chatbot, h.characters) for h in heads] == [
            (2, 1, 5), (2, 1, 7), (1, 0, 5), (0, 0, 0), (1, 1, 4),
        ]  # fmt: skip
        assert [h.persona_spoke for h in heads] == [True, True, True, False, False]
        assert [h.id for h in store.unfinished()] == ["a-3", "a-4"]
        assert [h.id for h in store.unrated("j")] == ["c-1", "b-1"], "longest first"
        store.set_ratings("c-1", "j", [DimensionRating("d", "Best", ())])
        assert [h.id for h in store.unrated("j")] == ["b-1"]
        assert [h.id for h in store.unrated("k")] == ["c-1", "b-1"]


def test_one_conversation_is_read_without_the_others(tmp_path: Path) -> None:
    held = Conversation("b-1", "b", 3, (Message(Speaker.PERSONA, "hi"), Message(Speaker.CHATBOT, "ho")), Ending.TURNS)
    with Store.open(tmp_path) as store:
        store.record((Conversation("a-1", "a", 1), held))
        assert store.conversation("b-1") == held
        with pytest.raises(KeyError):
            store.conversation("c-1")
