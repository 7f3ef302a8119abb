"""A sweep's file: its points and their names, and one sentence for each thing that is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vera_local.errors import UserError
from vera_local.run.sweep_file import SCRIPTED, read_sweep

Write = Callable[[str], Path]
WHOLE = """
personas = 4

[sweep]
out = "{out}"
bundles = ["psychosis", {{name = "suicide_risk", turns = 4}}]
seeds = [0, 7]
simulators = ["qwen3-14b", {{model = "qwen3-8b", name = "warm", temperature = 1.2}}]
judges = ["qwen3-8b", "qwen3-32b-fp8"]

[[chatbot]]
model = "smollm2-135m-instruct"

[[chatbot]]
kind = "http"
name = "the service"
url = "http://127.0.0.1:9/talk"
request = {{all = "{{history}}"}}
reply = "reply"
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Makes a sweep's file of a text."""

    def make(text: str) -> Path:
        file = tmp_path / "nightly.toml"
        file.write_text(text, encoding="utf-8")
        return file

    return make


def test_every_point_is_a_run_with_a_folder_of_its_own(write: Write, tmp_path: Path) -> None:
    asked = read_sweep(write(WHOLE.format(out=tmp_path / "out")))
    suicide = [point for point in asked.points if point.bundle == "suicide_risk"]
    assert [point.name for point in suicide] == [
        f"{chatbot}--{simulator}--suicide_risk--seed{seed}"
        for chatbot in ("smollm2-135m-instruct", "the-service")
        for simulator in ("qwen3-14b", "warm")
        for seed in (0, 7)
    ]
    for point in suicide:
        plan = point.plan
        assert plan.out == plan.config.out == tmp_path / "out" / point.name
        assert (plan.config.seed, len(plan.personas), plan.turns, len(plan.simulators)) == (point.seed, 4, 4, 1)
        assert [seat.name for seat in plan.judges] == ["qwen3-8b", "qwen3-32b-fp8"]
        assert plan.simulators[0].draw.temperature == 1.2 or point.simulator != "warm"


def test_a_bundle_without_a_simulator_has_each_run_once(write: Write, tmp_path: Path) -> None:
    text = WHOLE.format(out=tmp_path).replace(', {name = "suicide_risk", turns = 4}', "")
    points = read_sweep(write(text)).points
    assert [(point.chatbot, point.simulator, point.seed) for point in points] == [
        (chatbot, SCRIPTED, seed) for chatbot in ("smollm2-135m-instruct", "the-service") for seed in (0, 7)
    ]


def test_the_keys_of_a_config_are_axes_too_and_without_any_there_is_one_point(write: Write) -> None:
    (point,) = read_sweep(write("personas = 4\n")).points
    assert point.plan.out == Path("sweeps/nightly") / point.name
    (other,) = read_sweep(write('seed = 3\nchatbot = "qwen3-8b"\njudge = "qwen3-14b"\n[sweep]\nout = "x"\n')).points
    assert other.name == "qwen3-8b--smollm2-135m-instruct--suicide_risk--seed3"
    assert [seat.name for seat in other.plan.judges] == ["qwen3-14b"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[sweep]\nbundle = []\n", "key sweep.bundle: unknown key; known ones are out, bundles, seeds"),
        ("[sweep]\nseeds = []\n", "key sweep.seeds: holds nothing; name at least one, or leave the key out"),
        ("judge = []\n", "key judge: holds nothing"),
        ("[sweep]\nseeds = [-1]\n", "key sweep.seeds: must be at least 0"),
        ("[sweep]\nseeds = [true]\n", "key sweep.seeds: must be a whole number"),
        ("[sweep]\nbundles = 'psychosis'\n", "key sweep.bundles: input should be a valid list"),
        ("sweep = 3\n", "key sweep: "),
        ("[sweep]\nout = ''\n", "key sweep.out: name a folder"),
        ("out = 'x'\n", "key out: a sweep makes a folder for each run; write out under [sweep]"),
        ("ray = 'local'\n", "key ray: a sweep works on this machine alone; spread single runs with `vera-local run`"),
        ("turn = 4\n", "key turn: unknown key; known ones are bundle"),
        ("seed = 1\n[sweep]\nseeds = [2]\n", "keys seed and sweep.seeds: both name the seeds of the sweep"),
        ("[[chatbot]]\nname = 3\nmodel = 'x'\n", "key chatbot.name (chatbot): must be text"),
        (
            "[[chatbot]]\nmodel = 'qwen3-8b'\n[[chatbot]]\nmodel = 'qwen3-14b'\ntemprature = 1\n",
            "key chatbot.temprature: unknown key; known ones are model, url",
        ),
        ("[[chatbot]]\nmodel = 'qwen3-8b'\n[[chatbot]]\nmodel = 'x'\ntemprature = 1\n", " (chatbot 2 of 2)"),
        (
            "[[judge]]\nmodel = 'qwen3-8b'\n[[judge]]\nmodel = 'x'\nmode = 'odd'\n",
            "key judge.mode (judge 2 of 2): must",
        ),
        ("chatbot = 'no-such-model'\n", "with chatbot, simulator, bundle: "),
        (
            "personas = 90\n[sweep]\nbundles = ['suicide_risk', 'psychosis']\n",
            "bundle 2 of 2: key personas (bundle psychosis): 90 personas are wanted",
        ),
        (
            "[sweep]\nseeds = [1, 1]\n",
            "2 points are called smollm2-135m-instruct--smollm2-135m-instruct--suicide_risk--seed1",
        ),
        (
            "[[chatbot]]\nmodel = 'qwen3-8b'\n[[chatbot]]\nmodel = 'qwen3-8b'\ntemperature = 0.1\n",
            "give a chatbot or simulator that is there with several settings a `name` for each",
        ),
        (
            "[[chatbot]]\nname = 'A b'\nmodel = 'qwen3-8b'\n[[chatbot]]\nname = 'a-B'\nmodel = 'qwen3-8b'\n",
            "2 points are",
        ),
        ("[[chatbot]]\nname = '--'\nmodel = 'qwen3-8b'\n", "'--' has no letter or digit"),
        (f"[[chatbot]]\nname = '{'n' * 190}'\nmodel = 'qwen3-8b'\n", "is too long for a folder"),
        ("[[bundle]]\nturns = 4\n", "key bundle.name (bundle): missing, add it"),
        ("[[bundle]]\nname = 'psychosis'\nseed = 4\n", "key bundle.seed (bundle): is the same for all bundles"),
        (
            "[[bundle]]\nname = 'psychosis'\n[[bundle]]\nname = 'suicide_risk'\nturn = 4\n",
            "key turn: unknown key; known ones are bundle",
        ),
        ("[[bundle]]\nname = 'psychosis'\n[[bundle]]\nname = 'suicide_risk'\nturn = 4\n", " (bundle 2 of 2)"),
        ("bundle = 4\n", "key bundle: "),
        ("a = [", "this is not valid TOML"),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence(write: Write, text: str, told: str) -> None:
    file = write(text)
    with pytest.raises(UserError) as error:
        read_sweep(file)
    assert str(error.value).startswith(str(file))
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.toml: the sweep cannot be read"):
        read_sweep(tmp_path / "none.toml")
