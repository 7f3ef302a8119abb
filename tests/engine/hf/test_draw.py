from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vera_local.engine.hf.draw import Dice
from vera_local.engine.seam import Sampling

LOGITS = st.lists(st.floats(-8, 8, width=32), min_size=2, max_size=12)
SEEDS = st.integers(0, 2**31 - 1)


def dice(
    seed: int = 0, temperature: float = 1.0, top_p: float = 1.0, penalty: float = 1.0, seen: tuple[int, ...] = ()
) -> Dice:
    return Dice(Sampling(temperature, top_p, 8, seed, penalty), seen)


@given(LOGITS, SEEDS)
@settings(deadline=None)
def test_a_draw_hangs_on_the_seed_alone(logits: list[float], seed: int) -> None:
    one, other = dice(seed), dice(seed)
    tensor = torch.tensor(logits)
    kept = tensor.clone()
    first = [one.draw(tensor, None) for _ in range(5)]
    torch.rand(7)
    assert first == [other.draw(tensor, None) for _ in range(5)]
    assert torch.equal(tensor, kept), "the logits are not changed"


@given(LOGITS, SEEDS, st.data())
@settings(deadline=None)
def test_only_what_is_allowed_is_drawn(logits: list[float], seed: int, data: st.DataObject) -> None:
    allowed = data.draw(st.lists(st.integers(0, len(logits) - 1), min_size=1, unique=True))
    assert dice(seed, 5.0).draw(torch.tensor(logits), allowed) in allowed
    greedy = dice(seed, 0.0).draw(torch.tensor(logits), allowed)
    assert logits[greedy] == max(logits[token] for token in allowed)


@given(LOGITS, st.floats(0.05, 1.0), SEEDS)
@settings(max_examples=200, deadline=None)
def test_a_nucleus_holds_no_token_that_others_make_up_for(logits: list[float], top_p: float, seed: int) -> None:
    token = dice(seed, 3.0, top_p).draw(torch.tensor(logits), None)
    chances = (torch.tensor(logits) / 3.0).softmax(-1)
    assert float(chances[chances > chances[token]].sum()) < top_p + 1e-5


@pytest.mark.parametrize(("logits", "wanted"), [((2.0, 1.5), 1), ((-1.0, -1.5), 1), ((0.0, -1.0), 0)])
def test_a_penalty_makes_what_was_seen_less_likely(logits: tuple[float, float], wanted: int) -> None:
    assert dice(temperature=0.0, penalty=2.0, seen=(0,)).draw(torch.tensor(logits), None) == wanted
    assert dice(temperature=0.0, penalty=1.0, seen=(0,)).draw(torch.tensor(logits), None) == 0


def test_what_was_drawn_was_seen() -> None:
    die = dice(temperature=0.0, penalty=2.0)
    assert [die.draw(torch.tensor([2.0, 1.5, 1.2]), None) for _ in range(3)] == [0, 1, 2]


def test_draws_have_the_probabilities_of_the_logits() -> None:
    """Four standard deviations over 4000 draws of a fixed seed."""
    die, logits = dice(3), torch.tensor([0.0, 1.0, 2.0])
    drawn = torch.bincount(torch.tensor([die.draw(logits, None) for _ in range(4000)])) / 4000
    chances = logits.softmax(-1)
    assert torch.all((drawn - chances).abs() < 4 * (chances * (1 - chances) / 4000).sqrt())


def test_half_precision_logits_are_drawn_from() -> None:
    assert dice().draw(torch.tensor([0.0, 9.0], dtype=torch.bfloat16), [0]) == 0
