"""Conversation x rubric -> verdicts -> ratings. Knows no simulator and no chatbot."""

from vera_local.judge.ask import Judge
from vera_local.judge.exhibit import Exhibit
from vera_local.judge.judgement import judge_conversation
from vera_local.judge.lookahead import Lookahead, own_part
from vera_local.judge.persona import PersonaCheck, check_persona
from vera_local.judge.verdict import Confidence, Mode, State, Verdict

__all__ = [
    "Confidence",
    "Exhibit",
    "Judge",
    "Lookahead",
    "Mode",
    "PersonaCheck",
    "State",
    "Verdict",
    "check_persona",
    "judge_conversation",
    "own_part",
]
