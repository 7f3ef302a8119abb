"""Conversations that were held elsewhere, as a run to be judged. Knows no file and no format."""

from __future__ import annotations

from collections import Counter

from vera_local.run import manifest
from vera_local.run.folder import locked, prepare_folder
from vera_local.run.kept_bundle import keep
from vera_local.run.plan import Plan
from vera_local.run.publishing import Outcome, publish
from vera_local.run.recordings import Found
from vera_local.run.store import Store


def import_run(plan: Plan, found: Found) -> Outcome:
    """Make the plan's folder a run of these conversations, or find that it is one already.

    Raises UserError where the folder holds another run.
    """
    manifest.must_hold_texts(plan.out)
    prepare_folder(plan.out)
    with locked(plan.out):
        manifest.enter_import(plan, found.files, found.notes)
        keep(plan.out, plan.bundle)
        with Store.open(plan.out) as store:
            store.record(found.conversations)
            return publish(plan.out, plan.bundle, store)


def unknown_personas(outcome: Outcome) -> Counter[str]:
    """Persona -> conversations, for those that the bundle does not know; an empty name: the record has none."""
    known = {p.name for p in outcome.bundle.personas}
    return Counter(c.persona for c in outcome.conversations if c.persona not in known)
