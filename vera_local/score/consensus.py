"""What raters hold together, and judges that never read. Knows no coefficient, no name and no word.

Codes are those of `agreement`: (units, raters), MISSING where there is no rating.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vera_local.score.agreement import MISSING, Codes, tally
from vera_local.score.intervals import Floats


def majority(codes: Codes, categories: int) -> Codes:
    """The category that more than half of a unit's raters gave, of two raters at least; else MISSING: (units,)."""
    counts = tally(codes, categories)
    raters = counts.sum(axis=1)
    held = (raters >= 2) & (2 * counts.max(axis=1) > raters)
    return np.where(held, counts.argmax(axis=1), MISSING)


def majority_of_others(codes: Codes, categories: int) -> Codes:
    """For each rater the majority of all the others: (units, raters), MISSING where they hold none."""
    raters = codes.shape[1]
    return np.stack([majority(np.delete(codes, r, axis=1), categories) for r in range(raters)], axis=1)


def constant(reference: Codes, strata: NDArray[np.intp], categories: int) -> Codes:
    """The commonest reference of a unit's stratum, the first of equally common ones: (units,).

    It has seen the reference that it is held against, and is the best that a judge can do who knows only the stratum.
    """
    counts = _counts(reference, strata, categories)[strata]
    return np.where(counts.any(axis=1), counts.argmax(axis=1), MISSING)


def leave_one_out_mode(reference: Codes, cells: NDArray[np.intp], categories: int) -> Codes:
    """The commonest reference of all other units in a unit's cell, the first of equally common ones: (units,).

    MISSING where a unit is alone in its cell.
    """
    others = _counts(reference, cells, categories)[cells] - tally(reference[:, None], categories)
    return np.where(others.any(axis=1), others.argmax(axis=1), MISSING)


def _counts(reference: Codes, cells: NDArray[np.intp], categories: int) -> Floats:
    """Reference ratings by cell: (cells, categories)."""
    counts = np.zeros((int(cells.max(initial=-1)) + 1, categories))
    np.add.at(counts, cells, tally(reference[:, None], categories))
    return counts
