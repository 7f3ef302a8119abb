"""The commands. Thin: each reads its options, hands over and shows what comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vera_local.cli import agree as agree_command
from vera_local.cli import compare as compare_command
from vera_local.cli import doctor as doctor_command
from vera_local.cli import models as models_command
from vera_local.cli import offline as offline_command
from vera_local.cli import plan as plan_command
from vera_local.cli import purge as purge_command
from vera_local.cli import reading as reading_command
from vera_local.cli import recover as recover_command
from vera_local.cli import report as report_command
from vera_local.cli import score as score_command
from vera_local.cli import selftest as selftest_command
from vera_local.cli import stats as stats_command
from vera_local.cli import sweep as sweep_command
from vera_local.cli import transcripts as transcript_commands
from vera_local.cli import view as view_command
from vera_local.cli.interrupt import run_until_interrupted
from vera_local.cli.options import (
    Bundle,
    Code,
    Conversations,
    EndSemantics,
    Engine,
    Gpu,
    Gpus,
    Json,
    JudgeMode,
    Like,
    Price,
    Run,
    Target,
    with_options_of,
)
from vera_local.cli.personas import app as personas_app
from vera_local.cli.rubric import app as rubric_app
from vera_local.cli.show import announce, judge_notes, progress_console, show_outcome, warn
from vera_local.engine.seam import EngineError
from vera_local.errors import UserError
from vera_local.run import Outcome, Plan, Watcher, judge_run, load_config, make_plan, opener
from vera_local.run import run as run_plan
from vera_local.run.evaluate import bundle_of_run, must_hold_run
from vera_local.run.folder import ENGINE_LOG
from vera_local.run.network import network_line

app = typer.Typer(
    help="Evaluate how safely a chatbot meets people in crisis, on your own machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(rubric_app, name="rubric")
app.add_typer(personas_app, name="personas")

app.add_typer(transcript_commands.app)
app.add_typer(selftest_command.app)
app.add_typer(agree_command.app)
app.add_typer(score_command.app)
app.add_typer(reading_command.app)
app.add_typer(compare_command.app)
app.add_typer(report_command.app)
app.add_typer(view_command.app)
app.add_typer(stats_command.app)
app.add_typer(sweep_command.app)
app.add_typer(purge_command.app)
app.add_typer(recover_command.app)
app.add_typer(models_command.app, name="models")

Config = Annotated[Path | None, typer.Option("--config", help="TOML file with the same keys as the flags; flags win.")]
Out = Annotated[Path | None, typer.Option(help="Run folder. The same command goes on with what is in it.")]
Personas = Annotated[
    str | None,
    typer.Option(metavar="N|NAMES", help="How many, spread over the groups, or names with commas between them."),
]
Controls = Annotated[bool, typer.Option("--controls", help="Let the bundle's controls take part, too.")]
Turns = Annotated[str | None, typer.Option(metavar="N", help="Messages per conversation, both sides together.")]
Repeats = Annotated[str | None, typer.Option(metavar="N", help="Conversations with each persona.")]
First = Annotated[str | None, typer.Option(metavar="persona|chatbot", help="Who speaks first.")]
EarliestEnd = Annotated[
    str | None, typer.Option(metavar="TURN", help="First turn at which a persona may leave, instead of the bundle's.")
]
MaxTotalWords = Annotated[
    str | None, typer.Option(metavar="N", help="End a conversation at so many words of both sides together.")
]
CheckPersonas = Annotated[
    bool, typer.Option("--check-personas", help="Let the first judge rate how real each conversation's persona is.")
]
Seed = Annotated[str | None, typer.Option(metavar="N", help="Every request's seed is derived from it.")]
ModelText = "A profile's name, a .toml profile, a model folder, or MODEL@URL of an OpenAI-compatible server."
Simulator = Annotated[
    list[str] | None,
    typer.Option(metavar="MODEL", help=f"Plays the personas; may be given several times, each plays all. {ModelText}"),
]
ChatbotText = "Or FILE.toml with its table, python:MODULE:NAME, command:PROGRAM, recorded:PATH (docs/chatbots.md)."
Chatbot = Annotated[
    str | None, typer.Option(metavar="CHATBOT", help=f"The chatbot under test. {ModelText} {ChatbotText}")
]
Judge = Annotated[
    list[str] | None,
    typer.Option(metavar="MODEL", help=f"Answers the rubric's questions; may be given several times. {ModelText}"),
]
JudgeRepeats = Annotated[str | None, typer.Option(metavar="N", help="How often each judge rates each conversation.")]
JudgeWindow = Annotated[
    bool, typer.Option("--judge-window", help="Show a judge the first and last turns of a transcript that is too long.")
]
NoEvidence = Annotated[bool, typer.Option("--no-evidence", help="Do not ask judges for the turns behind an answer.")]
NoConfidence = Annotated[bool, typer.Option("--no-confidence", help="Do not read how sure judges are of an answer.")]

Replicas = Annotated[str | None, typer.Option(metavar="N", help="Host each model N times, on GPUs of its own.")]
Lookahead = Annotated[
    str | None,
    typer.Option(metavar="N", help="Questions asked ahead per conversation at most; 0: none. Without it as pays."),
]

Guard = Annotated[
    str | None,
    typer.Option(metavar="refuse|log", help="What happens to connections beyond this machine and the config's hosts."),
]

Ray = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS|local", help="Spread the run over a Ray cluster, or over workers on this machine."),
]
Actors = Annotated[
    str | None, typer.Option(metavar="N", help="Workers of a Ray cluster; without it as many as it has room for.")
]
ActorGpus = Annotated[
    str | None, typer.Option(metavar="N", help="GPUs of each worker; without it as few as keep all models awake.")
]

Offline = Annotated[
    bool, typer.Option("--offline", help="Evaluate one conversation and tell every connection; 1 if one left.")
]


@app.command()
def run(
    config: Config = None,
    bundle: Bundle = None,
    target: Target = None,
    end_semantics: EndSemantics = None,
    out: Out = None,
    personas: Personas = None,
    controls: Controls = False,
    turns: Turns = None,
    first: First = None,
    earliest_end: EarliestEnd = None,
    max_total_words: MaxTotalWords = None,
    repeats: Repeats = None,
    seed: Seed = None,
    engine: Engine = None,
    simulator: Simulator = None,
    chatbot: Chatbot = None,
    judge: Judge = None,
    judge_mode: JudgeMode = None,
    judge_repeats: JudgeRepeats = None,
    judge_window: JudgeWindow = False,
    no_evidence: NoEvidence = False,
    no_confidence: NoConfidence = False,
    check_personas: CheckPersonas = False,
    replicas: Replicas = None,
    lookahead: Lookahead = None,
    code: Code = None,
    guard: Guard = None,
    ray: Ray = None,
    actors: Actors = None,
    actor_gpus: ActorGpus = None,
    as_json: Json = False,
) -> None:
    """Simulate, judge and score. Without options: a small demonstration with the embedded model."""
    plan = _planned(
        config, bundle=bundle, target=target, end_semantics=end_semantics, out=out, personas=personas,
        controls=controls, turns=turns, first=first, earliest_end=earliest_end,
        max_total_words=max_total_words, repeats=repeats, seed=seed,
        engine=engine, simulator=simulator, chatbot=chatbot, judge=judge, check_personas=check_personas,
        judge_mode=judge_mode, judge_repeats=judge_repeats, judge_window=judge_window,
        no_evidence=no_evidence, no_confidence=no_confidence, replicas=replicas, lookahead=lookahead, guard=guard,
        ray=ray, actors=actors, actor_gpus=actor_gpus,
    )  # fmt: skip
    _evaluate(plan, judge=True, as_json=as_json)


@app.command()
@with_options_of(run)
def plan(
    *,
    gpu: Gpu = None,
    gpus: Gpus = None,
    conversations: Conversations = None,
    like: Like = None,
    gpu_hour_price: Price = None,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Say what `run` with the same options would ask, take and cost: an estimate. Starts no engine."""
    plan = _planned(**options)
    if conversations is not None:
        if options["repeats"] is not None:
            raise UserError("--conversations and --repeats both say how many conversations; give one of them")
        plan = _planned(**options | {"repeats": str(plan_command.repeats_for(conversations, plan))})
    spread = conversations is not None or plan.config.ray is not None
    plan_command.show(plan, gpu, gpus, like, gpu_hour_price, spread=spread, as_json=as_json)


@app.command()
def simulate(
    config: Config = None,
    bundle: Bundle = None,
    target: Target = None,
    end_semantics: EndSemantics = None,
    out: Out = None,
    personas: Personas = None,
    controls: Controls = False,
    turns: Turns = None,
    first: First = None,
    earliest_end: EarliestEnd = None,
    max_total_words: MaxTotalWords = None,
    repeats: Repeats = None,
    seed: Seed = None,
    engine: Engine = None,
    simulator: Simulator = None,
    chatbot: Chatbot = None,
    replicas: Replicas = None,
    code: Code = None,
    guard: Guard = None,
    ray: Ray = None,
    actors: Actors = None,
    actor_gpus: ActorGpus = None,
    as_json: Json = False,
) -> None:
    """Hold the conversations only; `vera-local judge RUN` rates them later."""
    flags = _flags(
        bundle=bundle, target=target, end_semantics=end_semantics, out=out, personas=personas,
        controls=controls or None, turns=turns, first=first, earliest_end=earliest_end,
        max_total_words=max_total_words, repeats=repeats, seed=seed,
        engine=engine, simulator=simulator or None, chatbot=chatbot, replicas=replicas, guard=guard,
        ray=ray, actors=actors, actor_gpus=actor_gpus,
    )  # fmt: skip
    _evaluate(make_plan(load_config(config, flags)), judge=False, as_json=as_json)


@app.command()
def judge(
    folder: Run,
    judge: Judge = None,
    judge_mode: JudgeMode = None,
    judge_repeats: JudgeRepeats = None,
    judge_window: JudgeWindow = False,
    no_evidence: NoEvidence = False,
    no_confidence: NoConfidence = False,
    check_personas: CheckPersonas = False,
    engine: Engine = None,
    replicas: Replicas = None,
    lookahead: Lookahead = None,
    code: Code = None,
    guard: Guard = None,
    ray: Ray = None,
    actors: Actors = None,
    actor_gpus: ActorGpus = None,
    as_json: Json = False,
) -> None:
    """Rate the conversations of a run with the judges it names, or with further ones; only what is missing is asked."""
    stored = must_hold_run(folder)["config"]
    if not judge and not stored["judge"]:
        raise UserError(f"{folder} has not been judged yet; name a judge with --judge")
    flags = _flags(
        out=folder, engine=engine, judge=judge or None, check_personas=check_personas or None,
        replicas=replicas, lookahead=lookahead, guard=guard,
        ray=ray, actors=actors, actor_gpus=actor_gpus,
        **_judge_flags(judge_mode, judge_repeats, judge_window, no_evidence, no_confidence),
    )  # fmt: skip
    plan = make_plan(load_config(None, flags, stored), bundle_of_run(folder))
    console = progress_console()
    warn(plan.bundle, console)
    for note in (*judge_notes(plan), f"Network: {network_line(plan)}."):
        console.print(note, highlight=False, markup=False, soft_wrap=True)
    outcome = _until_done(judge_run(plan, opener(folder / ENGINE_LOG), Watcher(console)), folder)
    _finish(outcome, judge=True, as_json=as_json)


@app.command()
def doctor(
    bundle: Bundle = None,
    turns: Turns = None,
    engine: Engine = None,
    simulator: Simulator = None,
    chatbot: Chatbot = None,
    judge: Judge = None,
    judge_mode: JudgeMode = None,
    code: Code = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Check this machine and try the models: engine, files, chat template, reasoning, answer constraint, context."""
    flags = _flags(
        bundle=bundle, turns=turns, engine=engine,
        simulator=simulator or None, chatbot=chatbot, judge=judge or None, judge_mode=judge_mode,
    )  # fmt: skip
    config = load_config(None, flags)
    if offline and flags.keys() - {"engine"}:
        raise UserError("--offline: evaluates with the embedded model, so that only --engine goes with it")
    console = progress_console()
    check = offline_command.prove(config.engine, console, as_json=as_json) if offline else None
    healthy = run_until_interrupted(check or doctor_command.examine(config, console, as_json=as_json), "Stopped.")
    raise typer.Exit(0 if healthy else 1)


def _flags(**given: Any) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value is not None}


def _planned(
    config: Path | None,
    *,
    controls: bool,
    simulator: list[str] | None,
    judge: list[str] | None,
    check_personas: bool,
    judge_mode: str | None,
    judge_repeats: str | None,
    judge_window: bool,
    no_evidence: bool,
    no_confidence: bool,
    **plain: Any,
) -> Plan:
    """The plan of a run with these options; a switch that is off and a list that is empty say nothing."""
    flags = _flags(
        controls=controls or None, simulator=simulator or None, judge=judge or None,
        check_personas=check_personas or None, **plain,
        **_judge_flags(judge_mode, judge_repeats, judge_window, no_evidence, no_confidence),
    )  # fmt: skip
    return make_plan(load_config(config, flags))


def _judge_flags(mode: str | None, repeats: str | None, window: bool, no_evidence: bool, no_confidence: bool) -> Any:
    """The flags that hold for every judge of the command line, as `load_config` takes them."""
    return {
        "judge_mode": mode,
        "judge_repeats": repeats,
        "judge_window": window or None,
        "judge_evidence": False if no_evidence else None,
        "judge_confidence": False if no_confidence else None,
    }


def _evaluate(plan: Plan, *, judge: bool, as_json: bool) -> None:
    console = progress_console()
    warn(plan.bundle, console)
    announce(plan, console, judge=judge)
    outcome = _until_done(run_plan(plan, opener(plan.out / ENGINE_LOG), Watcher(console), judge=judge), plan.out)
    _finish(outcome, judge=judge, as_json=as_json)


def _finish(outcome: Outcome, *, judge: bool, as_json: bool) -> None:
    """Show what came out; exit code 1 where it is nothing at all."""
    show_outcome(outcome, as_json=as_json)
    useful = outcome.scores if judge else [c for c in outcome.conversations if c.judgeable]
    if not useful:
        raise EngineError("no conversation could be judged, for the reasons above")


def _until_done(work: Any, folder: Path) -> Outcome:
    farewell = f"Stopped. What was finished is kept in {folder}; the same command goes on from there."
    outcome: Outcome = run_until_interrupted(work, farewell)
    return outcome
