"""One run on disk: config, manifest, store, scheduling, resume, progress. Knows no way to show a result."""

from vera_local.run.config import EMBEDDED, EngineName, RunConfig
from vera_local.run.config_file import load_config
from vera_local.run.evaluate import judge_run, run, score_run
from vera_local.run.host import Opener, Opening, key_of, opener, server_openings
from vera_local.run.plan import Plan, make_plan
from vera_local.run.players import Player
from vera_local.run.progress import Watcher
from vera_local.run.publishing import Outcome

__all__ = [
    "EMBEDDED",
    "EngineName",
    "Opener",
    "Opening",
    "Outcome",
    "Plan",
    "Player",
    "RunConfig",
    "Watcher",
    "judge_run",
    "key_of",
    "load_config",
    "make_plan",
    "opener",
    "run",
    "score_run",
    "server_openings",
]
