"""Who is awake together, where, and with how much KV cache, by sizes alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vera_local.engine.machine import SHARE, Machine
from vera_local.engine.placement import OVERHEAD, Arrangement, Need, Residency, arrange
from vera_local.errors import UserError

GB = 10**9
CUDA, CPU = OVERHEAD["cuda"], OVERHEAD["cpu"]


def gpus(count: int = 1, gb: int = 80) -> Machine:
    return Machine("cuda", "H", gb * GB, count)


def cpu(gb: int) -> Machine:
    return Machine("cpu", "2 CPU cores", gb * GB, 0)


def need(name: str, gb: float, stage: str = "talk", *, wanted: int = 10_000, context: int = 1000) -> Need:
    """A KV token takes 1 MB, so that 1,000 of them are a GB."""
    return Need(name, int(gb * GB), 10**6, context, 1, 1, stage, wanted, True)


def kv(found: Arrangement, name: str) -> int | None:
    return found.places[name][0].kv_bytes


def test_engines_that_fit_are_together_and_share_what_is_left() -> None:
    found = arrange([need("a", 10), need("b", 20, wanted=20_000)], gpus())
    assert found.residency is Residency.TOGETHER
    left = SHARE * 80 * GB - 2 * CUDA - 30 * GB
    # The same multiple of the tokens that each wants.
    assert kv(found, "a") == pytest.approx(left / 3, abs=2) and kv(found, "b") == pytest.approx(2 * left / 3, abs=2)
    assert not any(place.sleeps for of_one in found.places.values() for place in of_one)
    assert found.reason == "a and b are awake together: with their KV caches they fit H of 80.0 GB."


def test_equal_wants_are_equal_tokens_whatever_a_token_takes() -> None:
    small, large = need("small", 10), replace(need("large", 10), kv_bytes_per_token=3 * 10**6)
    found = arrange([small, large], gpus(gb=100))
    tokens = [(kv(found, n.name) or 0) / n.kv_bytes_per_token for n in (small, large)]
    assert tokens[0] == pytest.approx(tokens[1], rel=1e-6)


def test_nobody_gets_less_than_one_context() -> None:
    tiny, huge = need("tiny", 1, wanted=1, context=5000), need("huge", 1, wanted=1_000_000)
    found = arrange([tiny, huge], gpus())
    assert kv(found, "tiny") == 5000 * 10**6
    assert kv(found, "huge") == pytest.approx(SHARE * 80 * GB - 2 * CUDA - 7 * GB, abs=2)


def test_the_profile_s_own_kv_cache_wins() -> None:
    found = arrange([replace(need("a", 10), kv_bytes=GB), need("b", 10)], gpus())
    assert kv(found, "a") == GB
    assert kv(found, "b") == pytest.approx(SHARE * 80 * GB - 2 * CUDA - 21 * GB, abs=2)


def test_engines_of_different_stages_that_do_not_fit_sleep_for_each_other() -> None:
    talkers = [need("a", 15), need("b", 15)]
    found = arrange([*talkers, need("j", 40, "judge:j")], gpus(), free_ram=100 * GB)
    assert found.residency is Residency.STAGES
    assert all(place.sleeps for of_one in found.places.values() for place in of_one)
    room = SHARE * 80 * GB - 3 * CUDA
    assert found.room == {0: int(SHARE * 80 * GB) - 3 * CUDA}
    assert kv(found, "j") == pytest.approx(room - 40 * GB, abs=2)
    assert kv(found, "a") == kv(found, "b") == pytest.approx((room - 30 * GB) / 2, abs=2)
    assert "sleep in host memory (70.0 GB)" in found.reason


def test_judges_are_awake_one_by_one() -> None:
    judges = [need(name, 40, f"judge:{name}") for name in "jkl"]
    assert arrange([need("a", 10), *judges], gpus(), 10**12).residency is Residency.STAGES


def test_ample_room_in_turn_is_better_than_little_room_together() -> None:
    """Both fit beside each other with a context each, and not with what their conversations want."""
    both = [need("a", 25, wanted=20_000), need("j", 25, "judge:j", wanted=20_000)]
    assert arrange(both, gpus(), 10**12).residency is Residency.STAGES
    assert arrange([replace(n, kv_tokens_wanted=1) for n in both], gpus(), 10**12).residency is Residency.TOGETHER


def test_one_stage_makes_do_with_less() -> None:
    assert arrange([need("a", 25, wanted=40_000), need("b", 25)], gpus(), 10**12).residency is Residency.TOGETHER


def test_talkers_that_do_not_fit_take_turns() -> None:
    found = arrange([need("a", 50), need("b", 50)], gpus(), free_ram=10**12)
    assert found.residency is Residency.TURNS
    assert kv(found, "a") == kv(found, "b") == pytest.approx(SHARE * 80 * GB - 2 * CUDA - 50 * GB, abs=2)
    assert found.reason.startswith("Not even the models of one stage fit H of 80.0 GB together, so a and b take turns")


@pytest.mark.parametrize(
    ("can_sleep", "free", "why"),
    [(True, 50 * GB, "asleep they take 80.0 GB of host memory, of which 50.0 GB are free"), (False, None, "only vLLM")],
)
def test_where_nobody_can_sleep_engines_are_loaded_again_or_refused(
    can_sleep: bool, free: int | None, why: str
) -> None:
    first = replace(need("a", 40), can_sleep=can_sleep)
    found = arrange([first, replace(need("j", 40, "judge:j"), can_sleep=can_sleep)], gpus(), free)
    assert found.residency is Residency.RELOAD and why in found.reason
    # Alone in its stage, each measures by itself what is left.
    assert kv(found, "a") is None and not found.places["a"][0].sleeps
    with pytest.raises(UserError, match=f"a and b do not fit .* cannot take turns .*{why}.*; use smaller"):
        arrange([first, replace(need("b", 40), can_sleep=can_sleep)], gpus(), free)


def test_an_engine_alone_measures_by_itself() -> None:
    found = arrange([need("a", 70)], gpus())
    assert found.residency is Residency.TOGETHER and kv(found, "a") is None
    assert found.reason == "a is the only model hosted here."


@pytest.mark.parametrize("machine", [gpus(gb=24), cpu(24)])
def test_a_model_that_cannot_fit_is_named_with_the_remedy(machine: Machine) -> None:
    with pytest.raises(UserError, match=r"^b needs 31\.0 GB for its weights and one context, .* quantised"):
        arrange([need("a", 1), need("b", 30)], machine)


def test_one_engine_may_serve_several_stages() -> None:
    found = arrange([need("a", 20), need("b", 5), need("a", 20, "judge:a"), need("j", 40, "judge:j")], gpus(), 10**12)
    assert found.residency is Residency.STAGES
    assert set(found.places) == {"a", "b", "j"}
    # What it gets in the fuller of both stages.
    assert kv(found, "a") == kv(found, "b")


@pytest.mark.parametrize("can_sleep", [True, False])
def test_where_one_stage_needs_all_engines_they_stay_together_with_the_room_there_is(can_sleep: bool) -> None:
    """Sleep between the stages would give none of them a larger cache, and keep judging from beginning early."""
    needs = [need("a", 25), need("b", 25), need("a", 25, "judge:a")]
    found = arrange([replace(n, can_sleep=can_sleep) for n in needs], gpus(), 10**12)
    assert found.residency is Residency.TOGETHER
    assert kv(found, "a") == kv(found, "b") == pytest.approx((SHARE * 80 * GB - 2 * CUDA - 50 * GB) / 2, abs=2)


def test_several_gpus_have_the_largest_apart() -> None:
    found = arrange([need("a", 30), need("b", 60), need("c", 20)], gpus(2))
    assert found.residency is Residency.TOGETHER
    assert [found.places[name][0].gpus for name in "abc"] == [(1,), (0,), (1,)]


def test_stages_are_spread_each_by_itself() -> None:
    found = arrange([need("a", 40), need("b", 40), need("j", 45, "judge:j")], gpus(2), 10**12)
    assert found.residency is Residency.STAGES
    assert {found.places["a"][0].gpus, found.places["b"][0].gpus} == {(0,), (1,)}


def test_an_engine_over_two_gpus_has_half_of_all_on_each() -> None:
    pair = replace(need("a", 100), gpus_each=2)
    found = arrange([pair, need("b", 10)], gpus(4), 10**12)
    assert found.places["a"][0].gpus == (0, 1) and found.places["b"][0].gpus == (2,)
    beside = arrange([pair, need("b", 10)], gpus(2))
    assert beside.residency is Residency.TOGETHER
    left = SHARE * 80 * GB - 2 * CUDA - 60 * GB
    # Of a, a token takes half a MB on each.
    assert kv(beside, "a") == pytest.approx(left / 3, abs=2)


def test_replicas_have_a_group_each() -> None:
    found = arrange([replace(need("a", 100), gpus_each=2, replicas=2)], gpus(4))
    assert [place.gpus for place in found.places["a"]] == [(0, 1), (2, 3)]
    with pytest.raises(UserError, match=r"2 engines of a with 2 GPUs each need 4 GPUs and .* has 3; use fewer"):
        arrange([replace(need("a", 100), gpus_each=2, replicas=2)], gpus(3))
    with pytest.raises(UserError, match=r"^a need"):
        arrange([replace(need("a", 100), gpus_each=2)], gpus(1))


def test_on_a_cpu_all_share_the_memory() -> None:
    both = [replace(need("a", 10), replicas=2), need("b", 20, "judge:b", wanted=4000)]
    found = arrange(both, cpu(100))
    assert found.residency is Residency.TOGETHER
    assert all(place.gpus == () for of_one in found.places.values() for place in of_one)
    # No more than is wanted: the rest is not ours.
    assert [place.kv_bytes for place in found.places["a"]] == [10 * GB] * 2
    assert kv(found, "b") == 4 * GB
    assert arrange(both, cpu(64)).residency is Residency.TOGETHER
    assert arrange(both, cpu(45)).residency is Residency.RELOAD


def test_without_engines_there_is_nothing_to_arrange() -> None:
    assert arrange([], cpu(1)).places == {}


@st.composite
def many(draw: st.DrawFn) -> list[Need]:
    stages = ["talk", "talk", "judge:x", "judge:y"]
    return [
        Need(
            name=f"m{n}",
            weights_bytes=draw(st.integers(1, 120)) * GB,
            kv_bytes_per_token=draw(st.integers(1, 5)) * 10**5,
            context=draw(st.integers(1, 40)) * 1000,
            gpus_each=draw(st.sampled_from([1, 1, 2])),
            replicas=draw(st.sampled_from([1, 1, 2])),
            stage=draw(st.sampled_from(stages)),
            kv_tokens_wanted=draw(st.integers(0, 400)) * 1000,
            can_sleep=draw(st.booleans()),
            kv_bytes=draw(st.sampled_from([None, None, GB])),
        )
        for n in range(draw(st.integers(1, 5)))
    ]


@given(
    needs=many(),
    machine=st.builds(gpus, st.integers(1, 4), st.integers(24, 180)) | st.builds(cpu, st.integers(8, 2000)),
    free=st.none() | st.integers(0, 10**12),
)
def test_what_is_awake_together_fits_or_the_user_is_told(needs: list[Need], machine: Machine, free: int | None) -> None:
    try:
        found = arrange(needs, machine, free)
    except UserError as error:
        assert "; use " in str(error)
        return
    by_name = {n.name: n for n in needs}
    assert found.reason.endswith(".") and {name: len(p) for name, p in found.places.items()} == {
        n.name: n.replicas for n in needs
    }
    for together in _sets(found.residency, needs):
        _must_fit(found, [by_name[name] for name in together], needs, machine)
    sleeping = [n for n in needs if found.places[n.name][0].sleeps]
    assert all(n.can_sleep for n in sleeping)
    assert free is None or sum(n.weights_bytes * n.replicas for n in sleeping) <= free
    assert not sleeping or found.residency in (Residency.STAGES, Residency.TURNS)


def _sets(residency: Residency, needs: list[Need]) -> list[list[str]]:
    match residency:
        case Residency.TOGETHER:
            return [[n.name for n in needs]]
        case Residency.TURNS:
            return [[n.name] for n in needs]
        case _:
            return [[n.name for n in needs if n.stage == stage] for stage in {n.stage for n in needs}]


def _must_fit(found: Arrangement, together: list[Need], needs: list[Need], machine: Machine) -> None:
    """By an independent sum over what each place takes."""
    used: Counter[int] = Counter()
    residents = Counter(gpu for n in needs for place in found.places[n.name] for gpu in place.gpus or (0,))
    shared = {gpu for gpu, count in residents.items() if count > 1}
    for n in together:
        each = n.gpus_each if machine.device == "cuda" else 1
        groups = [place.gpus for place in found.places[n.name]]
        if machine.device == "cuda":
            assert len({gpu for group in groups for gpu in group}) == each * n.replicas
        for place in found.places[n.name]:
            least = n.context * n.kv_bytes_per_token / each if n.kv_bytes is None else n.kv_bytes
            assert place.kv_bytes is None or place.kv_bytes >= int(least)
            for gpu in place.gpus or (0,):
                used[gpu] += -(-n.weights_bytes // each) + (place.kv_bytes or 0)
    for gpu, count in used.items():
        asleep = residents[gpu] if found.residency is not Residency.RELOAD else 1
        limit = SHARE * machine.memory_bytes - asleep * OVERHEAD[machine.device] if gpu in shared else None
        if found.residency is not Residency.RELOAD and limit is not None:
            assert count <= limit
        assert count <= machine.memory_bytes
