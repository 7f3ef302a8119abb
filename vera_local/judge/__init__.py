"""Conversation x rubric -> verdicts -> ratings. Knows no simulator and no chatbot."""

from vera_local.judge.ask import Judge
from vera_local.judge.exhibit import Exhibit
from vera_local.judge.judgement import judge_conversation
from vera_local.judge.verdict import Confidence, Mode, State, Verdict

__all__ = ["Confidence", "Exhibit", "Judge", "Mode", "State", "Verdict", "judge_conversation"]
