"""The walk: what is asked next, what a path says of each dimension, and that a missing verdict is never guessed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vera_local.bundle.graph import Graph
from vera_local.bundle.rubric import Action, Do, Option, Question, Rubric
from vera_local.bundle.walk import Answered, DimensionRating, Walk

BEST, MIDDLE, WORST, NOT_RELEVANT = "best", "middle", "worst", "not relevant"
RATINGS = (BEST, MIDDLE, WORST)
SEVERITIES = {"medium": MIDDLE, "high": WORST}
NEXT = Action(Do.NEXT_QUESTION)
NEXT_DIMENSION = Action(Do.NEXT_DIMENSION)
SCORE = Action(Do.STOP_SCORE)
DISCARD = Action(Do.STOP_NOT_RELEVANT)
ALWAYS_DISCARD = Action(Do.STOP_DISCARD)


def go(target: str) -> Action:
    return Action(Do.GOTO, target)


def skip(target: str) -> Action:
    return Action(Do.SKIP_DIMENSION, target)


def ask(name: str, *options: Option, auto: bool = False) -> Question:
    """A question whose dimension is the first letter of its name; a plain Yes/No of severity high by default."""
    return Question(name, name[0], "?", "", options or (yes(NEXT_DIMENSION, "high"), no()), auto)


def yes(action: Action = NEXT, severity: str | None = None) -> Option:
    return Option("Yes", action, severity)


def no(action: Action = NEXT) -> Option:
    return Option("No", action)


def rubric(*questions: Question) -> Rubric:
    dimensions = tuple(dict.fromkeys(q.dimension for q in questions))
    return Rubric("r", "1", RATINGS, NOT_RELEVANT, SEVERITIES, dimensions, questions)


def walked(flow: Rubric, answers: dict[str, str | None], default: str | None = "No") -> Walk:
    walk = Walk.start(flow)
    while walk.question is not None:
        walk = walk.answer(answers.get(walk.question.id, default))
    return walk


def asked(walk: Walk) -> list[str]:
    return [a.question for a in walk.path]


def rated(walk: Walk) -> dict[str, tuple[str | None, tuple[str, ...]]]:
    return {r.dimension: (r.rating, r.decided_by) for r in walk.ratings()}


# The rules one by one


def test_nothing_found_gives_the_best_rating_and_no_deciding_question() -> None:
    walk = walked(rubric(ask("a1"), ask("b1")), {})
    assert walk.path == (Answered("a1", "No"), Answered("b1", "No"))
    assert walk.ratings() == (DimensionRating("a", BEST, ()), DimensionRating("b", BEST, ()))


def test_a_plain_yes_decides_its_dimension_and_leads_to_the_next() -> None:
    walk = walked(rubric(ask("a1"), ask("a2"), ask("b1")), {"a1": "Yes"})
    assert asked(walk) == ["a1", "b1"]
    assert rated(walk) == {"a": (WORST, ("a1",)), "b": (BEST, ())}


def test_the_worst_finding_wins_whatever_its_place_and_all_of_its_kind_are_named() -> None:
    flow = rubric(ask("a1", yes(NEXT, "high"), no()), ask("a2", yes(NEXT, "medium"), no()), ask("a3", yes(), no()))
    assert rated(walked(flow, {}, "Yes")) == {"a": (WORST, ("a1",))}
    assert rated(walked(flow, {"a2": "Yes"})) == {"a": (MIDDLE, ("a2",))}
    twice = rubric(ask("a1", yes(NEXT, "high"), no()), ask("a2", yes(NEXT, "high"), no()))
    assert rated(walked(twice, {}, "Yes")) == {"a": (WORST, ("a1", "a2"))}


def test_a_stop_as_not_relevant_discards_everything_found() -> None:
    flow = rubric(ask("a1", yes(NEXT, "high"), no()), ask("a2", yes(DISCARD), no()), ask("b1"))
    assert rated(walked(flow, {}, "Yes")) == {"a": (NOT_RELEVANT, ("a2",)), "b": (NOT_RELEVANT, ("a2",))}


def test_a_stop_as_not_relevant_at_a_finished_rubric_keeps_what_was_found() -> None:
    flow = rubric(ask("a1"), ask("b1", yes(NEXT, "medium"), no()), ask("b2", yes(), no(DISCARD)))
    assert rated(walked(flow, {"b1": "Yes"})) == {"a": (BEST, ()), "b": (MIDDLE, ("b1",))}


def test_a_stop_as_not_relevant_after_a_jump_over_a_dimension_is_no_finished_rubric() -> None:
    flow = rubric(ask("a1", yes(go("c1"), "high"), no()), ask("b1"), ask("c1", yes(), no(DISCARD)))
    assert {r for r, _ in rated(walked(flow, {"a1": "Yes"})).values()} == {NOT_RELEVANT}


def test_a_stop_and_score_keeps_what_was_visited() -> None:
    flow = rubric(ask("a1"), ask("b1", yes(SCORE, "medium"), no()), ask("c1"))
    assert rated(walked(flow, {"b1": "Yes"})) == {
        "a": (BEST, ()),
        "b": (MIDDLE, ("b1",)),
        "c": (NOT_RELEVANT, ("b1",)),
    }


def test_a_stop_and_score_decides_all_that_was_not_visited_also_what_was_out_of_reach() -> None:
    flow = rubric(ask("a1", yes(), no(go("a3"))), ask("a2"), ask("a3", yes(SCORE), no(SCORE)), ask("b1"))
    assert rated(walked(flow, {})) == {"a": (BEST, ()), "b": (NOT_RELEVANT, ("a3",))}


def test_a_skipped_dimension_is_not_relevant_whatever_was_found_in_it() -> None:
    flow = rubric(ask("a1", yes(NEXT, "high"), no()), ask("a2", yes(skip("b1")), no()), ask("b1"))
    assert rated(walked(flow, {"a1": "Yes", "a2": "Yes"})) == {"a": (NOT_RELEVANT, ("a2",)), "b": (BEST, ())}


def test_a_jump_over_a_dimension_leaves_it_not_relevant_by_the_answer_that_jumped() -> None:
    flow = rubric(ask("a1", yes(go("c1")), no()), ask("b1"), ask("c1"))
    walk = walked(flow, {"a1": "Yes"})
    assert asked(walk) == ["a1", "c1"]
    assert rated(walk)["b"] == (NOT_RELEVANT, ("a1",))


def test_a_jump_to_an_earlier_place_is_followed() -> None:
    flow = rubric(ask("a1", yes(go("b1")), no(go("b1"))), ask("a2", yes(SCORE), no(SCORE)), ask("b1", no(go("a2"))))
    assert asked(walked(flow, {})) == ["a1", "b1", "a2"]


def test_an_auto_question_is_answered_by_its_only_option() -> None:
    flow = rubric(ask("a1", Option("skip it", skip("b1")), auto=True), ask("b1"))
    assert rated(walked(flow, {"a1": "skip it"})) == {"a": (NOT_RELEVANT, ("a1",)), "b": (BEST, ())}


def test_misuse_is_refused() -> None:
    walk = Walk.start(rubric(ask("a1")))
    with pytest.raises(KeyError):
        walk.answer("yes")
    with pytest.raises(ValueError, match="a1"):
        walk.ratings()
    with pytest.raises(ValueError, match="ended"):
        walk.answer("No").answer("No")


def test_walks_of_one_rubric_share_their_graph() -> None:
    flow = rubric(ask("a1"))
    graph = Graph.of(flow)
    assert Graph.of(flow) is graph
    assert Graph.of(rubric(ask("a1"))) is not graph


# A missing verdict


def test_a_missing_verdict_resumes_where_all_paths_meet() -> None:
    flow = rubric(ask("a1"), ask("a2"), ask("b1"), ask("b2"))
    walk = walked(flow, {"a1": None, "b1": "Yes"})
    assert asked(walk) == ["a1", "b1"]
    assert rated(walk) == {"a": (None, ("a1",)), "b": (WORST, ("b1",))}


def test_a_missing_verdict_between_two_ways_to_the_next_question_costs_its_dimension_only() -> None:
    flow = rubric(ask("a1"), ask("b1", yes(NEXT, "medium"), no()), ask("b2"), ask("c1"))
    walk = walked(flow, {"b1": None, "b2": "Yes"})
    assert asked(walk) == ["a1", "b1", "b2", "c1"]
    assert rated(walk) == {"a": (BEST, ()), "b": (None, ("b1",)), "c": (BEST, ())}


def test_a_missing_verdict_leaves_a_dimension_open_that_it_may_have_jumped_over() -> None:
    flow = rubric(ask("a1", yes(go("c1")), no()), ask("b1"), ask("c1"))
    walk = walked(flow, {"a1": None})
    assert asked(walk) == ["a1", "c1"]
    assert rated(walk) == {"a": (None, ("a1",)), "b": (None, ("a1",)), "c": (BEST, ())}


def test_a_missing_verdict_before_a_possible_discard_ends_the_walk_and_opens_earlier_dimensions() -> None:
    flow = rubric(ask("a1"), ask("b1", yes(DISCARD), no()), ask("c1"))
    walk = walked(flow, {"b1": None})
    assert asked(walk) == ["a1", "b1"]
    assert rated(walk) == {"a": (None, ("b1",)), "b": (None, ("b1",)), "c": (None, ("b1",))}


def test_a_missing_verdict_before_a_possible_score_keeps_earlier_dimensions() -> None:
    flow = rubric(ask("a1"), ask("b1", yes(SCORE, "high"), no()), ask("c1"))
    walk = walked(flow, {"a1": "Yes", "b1": None})
    assert asked(walk) == ["a1", "b1"]
    assert rated(walk) == {"a": (WORST, ("a1",)), "b": (None, ("b1",)), "c": (None, ("b1",))}


def test_a_missing_last_verdict_keeps_earlier_dimensions_at_a_finished_rubric() -> None:
    flow = rubric(ask("a1"), ask("b1", yes(SCORE, "high"), no(DISCARD)))
    assert rated(walked(flow, {"b1": None})) == {"a": (BEST, ()), "b": (None, ("b1",))}


def test_a_missing_verdict_before_a_finished_rubric_costs_its_dimension_only() -> None:
    flow = rubric(ask("a1"), ask("b1", yes(NEXT, "medium"), no()), ask("c1", yes(), no(DISCARD)))
    assert rated(walked(flow, {"b1": None})) == {"a": (BEST, ()), "b": (None, ("b1",)), "c": (BEST, ())}


def test_a_missing_verdict_makes_it_open_whether_the_rubric_was_finished() -> None:
    flow = rubric(ask("a1"), ask("b1", yes(go("d1")), no()), ask("c1"), ask("d1", yes(), no(DISCARD)))
    assert {r for r, _ in rated(walked(flow, {"b1": None})).values()} == {None}
    assert rated(walked(flow, {"b1": None, "d1": "Yes"}))["a"] == (BEST, ())


def test_a_missing_verdict_at_an_auto_question_goes_its_only_way() -> None:
    flow = rubric(ask("a1", Option("skip it", skip("b1")), auto=True), ask("b1"))
    walk = walked(flow, {"a1": None})
    assert rated(walk) == {"a": (None, ("a1",)), "b": (BEST, ())}


def test_a_dimension_no_path_could_reach_stays_not_relevant_after_a_missing_verdict() -> None:
    flow = rubric(ask("a1", yes(go("c1")), no()), ask("b1"), ask("c1"))
    assert rated(walked(flow, {"a1": "Yes", "c1": None})) == {
        "a": (BEST, ()),
        "b": (NOT_RELEVANT, ("a1",)),
        "c": (None, ("c1",)),
    }


def test_every_verdict_missing_leaves_nothing_rated() -> None:
    walk = walked(rubric(ask("a1"), ask("a2"), ask("b1")), {}, None)
    assert rated(walk) == {"a": (None, ("a1",)), "b": (None, ("b1",))}


# Properties over random acyclic rubrics


@st.composite
def rubrics(draw: st.DrawFn) -> Rubric:
    """Up to three dimensions and six questions, every question reachable, all jumps forward."""
    sizes = draw(st.lists(st.integers(1, 2), min_size=1, max_size=3))
    ids = [f"{'abc'[d]}{i}" for d, size in enumerate(sizes) for i in range(size)]
    drawn: dict[str, list[Option]] = {}
    for i, name in enumerate(ids):
        drawn[name] = [draw(option(str(n), name, ids[i + 1 :])) for n in range(draw(st.integers(1, 2)))]
    for i, name in enumerate(ids[1:], start=1):
        before = rubric(*(ask(n, *options) for n, options in drawn.items()))
        if name not in Graph(before).flood(ids[0]):
            source = draw(st.sampled_from(sorted(set(ids[:i]) & Graph(before).flood(ids[0]))))
            drawn[source].append(Option(f"to {name}", go(name)))
    return rubric(*(ask(n, *options) for n, options in drawn.items()))


@st.composite
def option(draw: st.DrawFn, answer: str, name: str, later: Sequence[str]) -> Option:
    actions = [NEXT, NEXT, NEXT_DIMENSION, SCORE, DISCARD, ALWAYS_DISCARD, *(go(t) for t in later)]
    actions += [skip(t) for t in later if t[0] != name[0]]
    action = draw(st.sampled_from(actions))
    raises = action.do not in (Do.SKIP_DIMENSION, Do.STOP_DISCARD)
    return Option(answer, action, draw(st.sampled_from([None, "medium", "high"])) if raises else None)


@st.composite
def walks(draw: st.DrawFn, missing: bool) -> tuple[Rubric, Walk]:
    flow = draw(rubrics())
    walk = Walk.start(flow)
    while walk.question is not None:
        answers: list[str | None] = [o.answer for o in walk.question.options]
        walk = walk.answer(draw(st.sampled_from([*answers, None] if missing else answers)))
    return flow, walk


def by_hand(flow: Rubric, walk: Walk) -> dict[str, str]:
    """The rating of each dimension by a fold over a path without gaps, as an independent reading of the rules."""
    steps = [(flow.by_id[a.question], flow.by_id[a.question].option(a.answer or "")) for a in walk.path]
    ratings = dict.fromkeys(flow.dimensions, NOT_RELEVANT)
    skipped = {question.dimension for question, chosen in steps if chosen.action.do is Do.SKIP_DIMENSION}
    for question, chosen in steps:
        before = ratings[question.dimension]
        rank = max(
            RATINGS.index(before) if before in RATINGS else 0, ["", "medium", "high"].index(chosen.severity or "")
        )
        ratings[question.dimension] = RATINGS[rank]
    unvisited = set(flow.dimensions) - {question.dimension for question, _ in steps}
    ending = steps[-1][1].action.do
    if ending is Do.STOP_DISCARD or (ending is Do.STOP_NOT_RELEVANT and unvisited):
        return dict.fromkeys(flow.dimensions, NOT_RELEVANT)
    return {d: NOT_RELEVANT if d in skipped else rating for d, rating in ratings.items()}


def completions(flow: Rubric, path: Sequence[Answered]) -> Iterator[Walk]:
    """Every walk without gaps that agrees with `path` wherever it has an answer."""

    def extend(walk: Walk, rest: Sequence[Answered]) -> Iterator[Walk]:
        if walk.question is None:
            assert not rest, "a path misses the question at which the walk went on"
            yield walk
        elif rest and rest[0].question == walk.question.id and rest[0].answer is not None:
            yield from extend(walk.answer(rest[0].answer), rest[1:])
        else:
            after = rest[1:] if rest and rest[0].question == walk.question.id else rest
            for chosen in walk.question.options:
                yield from extend(walk.answer(chosen.answer), after)

    yield from extend(Walk.start(flow), path)


def paths(flow: Rubric, question: Question | None) -> Iterator[list[str]]:
    if question is None:
        yield []
        return
    for chosen in question.options:
        for path in paths(flow, flow.follow(question, chosen)):
            yield [question.id, *path]


@given(walks(missing=True))
def test_a_walk_asks_nothing_twice_and_rates_every_dimension(drawn: tuple[Rubric, Walk]) -> None:
    flow, walk = drawn
    assert len(set(asked(walk))) == len(walk.path) <= len(flow.questions)
    assert [r.dimension for r in walk.ratings()] == list(flow.dimensions)


@given(walks(missing=False))
def test_without_a_gap_the_ratings_are_those_of_a_fold_by_hand(drawn: tuple[Rubric, Walk]) -> None:
    flow, walk = drawn
    assert {r.dimension: r.rating for r in walk.ratings()} == by_hand(flow, walk)


@given(walks(missing=True))
def test_a_rating_is_never_better_than_a_finding_in_its_dimension(drawn: tuple[Rubric, Walk]) -> None:
    flow, walk = drawn
    ratings = {r.dimension: r.rating for r in walk.ratings()}
    for answered in walk.path:
        question = flow.by_id[answered.question]
        severity = question.option(answered.answer).severity if answered.answer is not None else None
        rating = ratings[question.dimension]
        if severity is not None and rating in RATINGS:
            assert RATINGS.index(rating) >= RATINGS.index(SEVERITIES[severity])


@given(walks(missing=True))
def test_what_decided_a_rating_was_asked(drawn: tuple[Rubric, Walk]) -> None:
    _, walk = drawn
    answers = {a.question: a.answer for a in walk.path}
    for rating in walk.ratings():
        assert set(rating.decided_by) <= answers.keys()
        assert (rating.rating == BEST) == (not rating.decided_by)
        if rating.rating is None:
            assert all(answers[q] is None for q in rating.decided_by)


@settings(max_examples=400)
@given(walks(missing=True))
def test_a_rating_beside_a_gap_is_the_same_whatever_the_missing_answers_were(drawn: tuple[Rubric, Walk]) -> None:
    flow, walk = drawn
    kept = [(i, r.rating) for i, r in enumerate(walk.ratings()) if r.rating is not None]
    for complete in completions(flow, walk.path):
        ratings = complete.ratings()
        assert [(i, ratings[i].rating) for i, _ in kept] == kept


@given(rubrics())
def test_the_meeting_is_the_first_question_common_to_all_paths(flow: Rubric) -> None:
    graph = Graph(flow)
    for question in flow.questions:
        after = [path[1:] for path in paths(flow, question)]
        common = set(after[0]).intersection(*after)
        meeting = graph.meeting(question.id)
        assert meeting == next((q for q in after[0] if q in common), None)
        ends = [path.index(meeting) if meeting is not None else len(path) for path in after]
        assert graph.between(question.id) == {q for path, end in zip(after, ends, strict=True) for q in path[:end]}


def test_a_walk_can_still_reach_what_some_answers_lead_to_and_at_the_end_nothing() -> None:
    flow = rubric(
        ask("a1", yes(go("b1")), no(go("a2"))), ask("a2"), ask("b1", yes(go("b3")), no()), ask("b2"), ask("b3")
    )
    walk = Walk.start(flow)
    assert walk.reachable == {"a1", "a2", "b1", "b2", "b3"}
    assert walk.answer("Yes").reachable == {"b1", "b2", "b3"}
    assert walk.answer("Yes").answer("Yes").reachable == {"b3"}
    assert walk.answer("Yes").answer("Yes").answer("No").reachable == frozenset()


def test_questions_have_their_places_in_rubric_order() -> None:
    flow = rubric(ask("a1"), ask("a2"), ask("b1"))
    assert [flow.place(question) for question in flow.questions] == [0, 1, 2]
