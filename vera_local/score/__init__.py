"""Ratings to counts, percentages and scores. Knows no model, no disk and no dimension by name."""

from vera_local.score.bounds import FEW, SEED, Bounds
from vera_local.score.formulas import vera_score
from vera_local.score.intervals import DRAWS, LEVEL
from vera_local.score.modes import QUESTIONS, Decision, Put, questions_frame
from vera_local.score.profile import Intervals, Profile, Tally
from vera_local.score.ratings import SCHEMA, UNKNOWN, Rating, ratings_frame
from vera_local.score.scale import Scale
from vera_local.score.scores import Grouping, Scores, score, score_by_judge
from vera_local.score.tidy import TIDY, tidy

__all__ = [
    "DRAWS",
    "FEW",
    "LEVEL",
    "QUESTIONS",
    "SCHEMA",
    "SEED",
    "TIDY",
    "UNKNOWN",
    "Bounds",
    "Decision",
    "Grouping",
    "Intervals",
    "Profile",
    "Put",
    "Rating",
    "Scale",
    "Scores",
    "Tally",
    "questions_frame",
    "ratings_frame",
    "score",
    "score_by_judge",
    "tidy",
    "vera_score",
]
