"""The tables of a run's store and how older stores come to have them. Knows nothing of what the rows mean."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from vera_local.errors import UserError

STEPS = (
    """
create table if not exists conversations (
    id text primary key, place integer not null, persona text not null, repeat integer not null,
    ending text, detail text not null default ''
);
create table if not exists messages (
    conversation text not null references conversations (id), turn integer not null, speaker text not null,
    text text not null, cut integer not null, prompt_tokens integer not null, cached_tokens integer not null,
    output_tokens integer not null, primary key (conversation, turn)
);
create table if not exists verdicts (
    conversation text not null references conversations (id), judge text not null, question text not null,
    place integer not null, state text not null, answer text, mode text not null, text text not null,
    detail text not null, prompt_tokens integer not null, cached_tokens integer not null,
    output_tokens integer not null, primary key (conversation, judge, question)
);
create table if not exists ratings (
    conversation text not null references conversations (id), judge text not null, dimension text not null,
    rating text, decided_by text not null, primary key (conversation, judge, dimension)
);
alter table verdicts add column rationale text not null default '';
alter table verdicts add column evidence text;
alter table verdicts add column confidence text;
alter table verdicts add column left_out text not null default '';
""",
    """
alter table messages add column early integer not null default 0;
alter table messages add column left_out integer not null default 0;
create table rejected (
    conversation text not null references conversations (id), turn integer not null, attempt integer not null,
    rules text not null, text text not null, prompt_tokens integer not null, cached_tokens integer not null,
    output_tokens integer not null, primary key (conversation, turn, attempt)
);
create table persona_checks (
    conversation text not null references conversations (id), judge text not null, realism integer,
    role_keeping integer, detail text not null, prompt_tokens integer not null, cached_tokens integer not null,
    output_tokens integer not null, primary key (conversation, judge)
);
""",
    """
create table sessions (
    session integer primary key, started text not null, wall_s real not null, busy_s real not null,
    peak_memory_bytes integer, peak_gpu_bytes integer
);
create table stages (
    session integer not null references sessions (session), stage text not null, wall_s real not null,
    busy_s real not null, primary key (session, stage)
);
create table usage (
    session integer not null references sessions (session), stage text not null, role text not null,
    model text not null, requests integer not null, failed integer not null, aborted integer not null,
    prompt_tokens integer not null, cached_tokens integer not null, output_tokens integer not null,
    distinct_tokens integer not null, kept_prompt_tokens integer not null, kept_cached_tokens integer not null,
    kept_output_tokens integer not null, busy_s real not null, primary key (session, stage, role, model)
);
""",
    """
alter table sessions add column restarts integer not null default 0;
""",
    """
create index conversations_in_order on conversations (place);
alter table sessions add column part_of integer;
""",
)
"""What brings a store from one version (its `user_version`) to the next; a new file is of version 0."""


def bring_up(connection: sqlite3.Connection, file: Path) -> None:
    """Bring a store to the newest version, whole or not at all; UserError where it is of a newer program."""
    if _version(connection, file) == len(STEPS):
        return
    try:
        connection.execute("begin immediate")
        # Another process may have done it while this one waited for the lock.
        for statement in "".join(STEPS[_version(connection, file) :]).split(";"):
            connection.execute(statement)
        connection.execute(f"pragma user_version = {len(STEPS)}")
        connection.execute("commit")
    except (sqlite3.Error, UserError):
        # Closed, it gives back what was changed, and its lock.
        connection.close()
        raise


def _version(connection: sqlite3.Connection, file: Path) -> int:
    version: int = connection.execute("pragma user_version").fetchone()[0]
    if version > len(STEPS):
        raise UserError(f"{file} was written by a newer version of this program; use that version with it")
    return version
