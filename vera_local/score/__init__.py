"""Ratings to counts, percentages and scores. Knows no model, no disk and no dimension by name."""

from vera_local.score.ratings import SCHEMA, Rating, ratings_frame
from vera_local.score.scores import Profile, Scale, Scores, Tally, score, score_by_judge, vera_score

__all__ = [
    "SCHEMA",
    "Profile",
    "Rating",
    "Scale",
    "Scores",
    "Tally",
    "ratings_frame",
    "score",
    "score_by_judge",
    "vera_score",
]
