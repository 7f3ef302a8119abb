"""How long 200,000 rating rows take to score with intervals, and how much memory; one JSON object on the last line.

`--personas N`: of how many personas the 40,000 conversations are.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np
import polars as pl

from vera_local.score import Scale, score_by_judge

SCALE = Scale(
    ("Best", "Middle", "Worst"), "Not Relevant", tuple(f"Dimension {i}" for i in range(5)), ("None", "Low", "High")
)
ROWS = 200_000


def frame(personas: int) -> pl.DataFrame:
    """`ROWS` ratings by one judge, each conversation rated in every dimension."""
    rng, width = np.random.default_rng(0), len(SCALE.dimensions)
    conversation = np.arange(ROWS) // width
    persona = conversation % personas
    words = [*SCALE.ratings, SCALE.not_relevant, None]
    return pl.DataFrame(
        {
            "conversation": [f"c{i}" for i in conversation],
            "persona": [f"P{i}" for i in persona],
            "group": [SCALE.groups[i % len(SCALE.groups)] for i in persona],
            "repeat": conversation // personas + 1,
            "judge": ["judge"] * ROWS,
            "dimension": list(SCALE.dimensions) * (ROWS // width),
            "rating": [words[i] for i in rng.choice(5, size=ROWS, p=[0.4, 0.2, 0.2, 0.19, 0.01])],
        }
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--personas", type=int, default=100)
    personas = parser.parse_args().personas
    rows = frame(personas)
    start = time.perf_counter()
    score_by_judge(rows, SCALE)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rows": ROWS, "personas": personas, "seconds": round(seconds, 3), "peak_mb": round(peak)}))


if __name__ == "__main__":
    main()
