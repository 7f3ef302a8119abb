from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vera_local.bundle import DimensionRating, Walk, load_bundle
from vera_local.conversation import Conversation, Ending, Message, Speaker
from vera_local.engine.fake import FakeEngine, Handler
from vera_local.engine.grammar import pattern_of
from vera_local.engine.seam import Draw, EngineDied, Finish, InvalidRequest, Reply, Request, Usage
from vera_local.judge import Judge, Mode, State, Verdict, judge_conversation
from vera_local.judge.exhibit import exhibit

BUNDLE = load_bundle("suicide_risk")
RUBRIC = BUNDLE.rubric
TALK = Conversation(
    "Ann-1", "Ann", 1, (Message(Speaker.PERSONA, "hello"), Message(Speaker.CHATBOT, "hi")), Ending.TURNS
)
ANSWERS = {
    pattern_of([o.answer for o in q.options]): [o.answer for o in q.options] for q in RUBRIC.questions if not q.auto
}
"""The options that a request allows, by its pattern."""


class Judging:
    """One judgement: its engine, what it recorded and the ratings it came to."""

    def __init__(self, handler: Handler, known: Mapping[str, Verdict] | None = None) -> None:
        self.engine = FakeEngine(handler)
        self.recorded: list[tuple[int, Verdict]] = []
        draw = Draw(temperature=0.0, top_p=1.0, max_tokens=8)
        # What stands around the answers is tested by itself (test_modes); here it would hide them.
        judge = Judge("own", self.engine, draw, BUNDLE.prompts, BUNDLE.prompts.judge_question, 0)
        self._judge = replace(judge, evidence=False, confidence=False)
        self._known = known or {}
        self.ratings: tuple[DimensionRating, ...] = ()

    async def done(self) -> Judging:
        self.ratings = await judge_conversation(
            self._judge, RUBRIC, exhibit(TALK, 0), self._known, lambda *what: self.recorded.append(what)
        )
        return self

    @property
    def verdicts(self) -> dict[str, Verdict]:
        return {verdict.question: verdict for _, verdict in self.recorded}


def at_random(seed: int) -> Handler:
    """Answers that depend on the seed and the request alone, as a model's would."""

    def answer(request: Request) -> str:
        return random.Random(f"{seed} {request.sampling.seed}").choice(ANSWERS[request.pattern or ""])

    return answer


def faulty(seed: int) -> Handler:
    """Sometimes nonsense, a cut answer or a refusal."""

    def answer(request: Request) -> str | Reply:
        rng = random.Random(f"{seed} {request.sampling.seed}")
        option = rng.choice(ANSWERS[request.pattern or ""])
        match rng.randrange(8):
            case 0:
                return f"{option}!"
            case 1:
                return Reply(option, Finish.LENGTH, Usage())
            case 2:
                raise InvalidRequest("no")
            case _:
                return option

    return answer


def judged(handler: Handler, known: Mapping[str, Verdict] | None = None) -> Judging:
    return asyncio.run(Judging(handler, known).done())


SEEDS = st.integers(min_value=0, max_value=10**6)


@given(SEEDS, st.sampled_from([at_random, faulty]))
@settings(deadline=None)
def test_every_answer_is_exactly_an_option_and_every_other_verdict_has_none(
    seed: int, kind: Callable[[int], Handler]
) -> None:
    done = judged(kind(seed))
    for _, verdict in done.recorded:
        options = {o.answer for o in RUBRIC.by_id[verdict.question].options}
        assert (verdict.answer in options) == (verdict.state is State.ANSWERED)
        assert (verdict.answer is None) == (verdict.state is not State.ANSWERED)
        assert (verdict.mode is Mode.AUTO) == RUBRIC.by_id[verdict.question].auto


@given(SEEDS, st.sampled_from([at_random, faulty]))
@settings(deadline=None)
def test_verdicts_are_recorded_in_the_order_of_the_walk_and_lead_to_its_ratings(
    seed: int, kind: Callable[[int], Handler]
) -> None:
    done = judged(kind(seed))
    walk = Walk.start(RUBRIC)
    for place, (recorded, verdict) in enumerate(done.recorded, 1):
        assert recorded == place
        assert walk.question is not None and walk.question.id == verdict.question
        walk = walk.answer(verdict.answer)
    assert walk.question is None
    assert done.ratings == walk.ratings()
    asked = [v for _, v in done.recorded if v.mode is Mode.DIRECT]
    assert len(done.engine.requests) == len(asked)


@given(SEEDS)
@settings(deadline=None)
def test_answered_in_full_no_dimension_is_unrated(seed: int) -> None:
    ratings = judged(at_random(seed)).ratings
    assert [rating.dimension for rating in ratings] == list(RUBRIC.dimensions)
    assert all(rating.rating in (*RUBRIC.ratings, RUBRIC.not_relevant) for rating in ratings)


@given(SEEDS, st.sampled_from([at_random, faulty]), st.data())
@settings(deadline=None)
def test_known_verdicts_are_not_asked_for_again_and_the_ratings_are_the_same(
    seed: int, kind: Callable[[int], Handler], data: st.DataObject
) -> None:
    whole = judged(kind(seed))
    held = data.draw(st.integers(0, len(whole.recorded)))
    again = judged(kind(seed), {verdict.question: verdict for _, verdict in whole.recorded[:held]})
    assert again.recorded == whole.recorded[held:]
    assert again.ratings == whole.ratings
    assert again.engine.requests == whole.engine.requests[len(whole.engine.requests) - len(again.engine.requests) :]


def test_a_missing_verdict_that_is_known_is_not_asked_for_again_and_leaves_its_dimension_unrated() -> None:
    first = RUBRIC.questions[0]
    known = {first.id: Verdict(first.id, State.ERROR, None, Mode.DIRECT, detail="no")}
    done = judged(at_random(1), known)
    assert first.id not in done.verdicts
    assert done.ratings[0] == DimensionRating(first.dimension, None, (first.id,))


@pytest.mark.parametrize(
    "reply", [Reply("perhaps", Finish.STOP, Usage()), Reply("Yes", Finish.LENGTH, Usage()), InvalidRequest("no")]
)
def test_a_missing_verdict_is_recorded_and_leaves_its_dimension_unrated(reply: Reply | InvalidRequest) -> None:
    def answer(_: Request) -> Reply:
        if isinstance(reply, Reply):
            return reply
        raise reply

    done = judged(answer)
    assert done.recorded[0][1].answer is None
    assert done.ratings[0].rating is None
    assert all(rating.rating not in RUBRIC.ratings for rating in done.ratings)


def test_a_dead_engine_is_told_on_and_what_was_answered_is_recorded() -> None:
    answered = at_random(4)
    left = 2

    def answer(request: Request) -> str:
        nonlocal left
        if left == 0:
            raise EngineDied("gone")
        left -= 1
        text = answered(request)
        assert isinstance(text, str)
        return "Yes" if "Yes" in ANSWERS[request.pattern or ""] else text

    judging = Judging(answer)
    with pytest.raises(EngineDied):
        asyncio.run(judging.done())
    assert sum(verdict.mode is Mode.DIRECT for verdict in judging.verdicts.values()) == 2


def test_a_verdict_is_recorded_before_the_next_question_is_asked() -> None:
    answer, seen = at_random(2), list[int]()

    def note(request: Request) -> str:
        seen.append(sum(v.mode is Mode.DIRECT for _, v in judging.recorded))
        text = answer(request)
        assert isinstance(text, str)
        return text

    judging = Judging(note)
    asyncio.run(judging.done())
    assert seen == list(range(len(seen))) and seen
