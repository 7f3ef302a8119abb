"""A run folder that was copied elsewhere opens, reports and goes on; a bundle that lies elsewhere now is named."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.answers import at_random
from tests.bundle.upstream.shapes import CHECKOUT, FLAT, write
from tests.kept import must_be_the_same
from tests.run.conftest import MakePlan, Opened
from tests.run.test_reviving import Failing
from vera_local.bundle import known_bundles, load_bundle
from vera_local.bundle.suite_file import SELFTEST, suite_of
from vera_local.data import data_root
from vera_local.engine.seam import EngineDied
from vera_local.errors import UserError
from vera_local.report.html.page import Choice, page
from vera_local.report.html.render import report_html
from vera_local.run import Watcher, run, score_run
from vera_local.run.evaluate import bundle_of_run
from vera_local.run.exporting import Layout, export_run
from vera_local.run.identities import bundle_identity
from vera_local.run.kept_bundle import keep, kept
from vera_local.run.purging import purge_run
from vera_local.run.reading import read_run
from vera_local.run.reported import record_of
from vera_local.run.viewed import Viewed

Answering = Callable[..., Opened]


async def test_a_copy_opens_reports_and_goes_on(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    calm, plan, moved = make(out=tmp_path / "calm"), make(), tmp_path / "other machine" / "copy"
    await run(calm, answering(at_random), watcher)
    with pytest.raises(EngineDied):
        await run(plan, answering(Failing(11, kind=EngineDied)), watcher)
    shutil.copytree(plan.out, moved)
    shutil.rmtree(plan.out)
    outcome = await run(make(out=moved), answering(at_random), watcher)
    assert outcome.folder == moved
    must_be_the_same(moved, calm.out)
    bundle = bundle_of_run(moved)
    assert score_run(moved, bundle).scores == outcome.scores
    assert read_run(moved, bundle, None, None)
    assert report_html(page(record_of(moved, bundle), Choice()))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A bundle in a folder of somebody's own."""
    for folder in ("rubric/suicide_risk", "personas"):
        shutil.copytree(data_root() / folder, tmp_path / "here" / folder)
    return tmp_path / "here" / "rubric" / "suicide_risk"


async def test_a_copy_opens_where_neither_bundle_nor_model_is(
    tmp_path: Path, own: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    profile = tmp_path / "smollm2-135m-instruct.toml"
    shutil.copy(data_root() / "models" / "smollm2-135m-instruct.toml", profile)
    players = {"simulator": str(profile), "chatbot": str(profile), "judge": str(profile)}
    outcome = await run(make(bundle=str(own), **players), answering(at_random), watcher)
    moved = tmp_path / "other machine" / "copy"
    shutil.copytree(outcome.folder, moved)
    for gone in (outcome.folder, tmp_path / "here"):
        shutil.rmtree(gone)
    profile.unlink()
    bundle = bundle_of_run(moved)
    assert score_run(moved, bundle).scores == outcome.scores
    assert read_run(moved, bundle, None, None)
    assert report_html(page(record_of(moved, bundle), Choice()))
    assert Viewed.open(moved).overview(None).judges
    assert export_run(moved, bundle, Layout.VERA_MH, tmp_path / "exported").conversations == 4
    assert not purge_run(moved).left


async def test_a_copy_goes_on_with_a_bundle_at_another_place(
    own: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    first = await run(make(bundle=str(own)), answering(at_random), watcher)
    shutil.rmtree(own)
    opened = answering(at_random)
    again = await run(make(bundle=str(first.folder / "bundle" / "suicide_risk")), opened, watcher)
    assert again.scores == first.scores and not opened.engines


async def test_a_bundle_that_was_changed_is_refused_though_the_run_keeps_its_own(
    own: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    outcome = await run(make(bundle=str(own)), answering(at_random), watcher)
    with (own / "judge_question.txt").open("a") as prompt:
        prompt.write("Be strict.")
    with pytest.raises(UserError, match=r"bundle\.files\.judge_question\.txt was"):
        score_run(outcome.folder, bundle_of_run(outcome.folder))


def test_what_a_bundle_reads_is_kept_as_it_is(tmp_path: Path) -> None:
    checkout, flat = write(tmp_path / "checkout", CHECKOUT), write(tmp_path / "data", FLAT)
    official = [load_bundle(checkout, "SI"), load_bundle(checkout / "data" / "HFO"), load_bundle(flat)]
    for number, bundle in enumerate([*map(load_bundle, known_bundles()), *official]):
        folder = tmp_path / str(number)
        folder.mkdir()
        keep(folder, bundle)
        place = kept(folder, bundle.name)
        assert place is not None
        again = load_bundle(place)
        assert bundle_identity(again) == bundle_identity(bundle)
        assert (again.personas, again.prompts) == (bundle.personas, bundle.prompts)
        if bundle.folder is not None and (bundle.folder / SELFTEST).exists():
            assert suite_of(again) == suite_of(bundle)


def test_a_bundle_s_name_leads_nowhere_else(tmp_path: Path) -> None:
    bundle = replace(load_bundle("suicide_risk"), name="vera-mh-../../elsewhere")
    (tmp_path / "run").mkdir()
    keep(tmp_path / "run", bundle)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert kept(tmp_path / "run", bundle.name) == tmp_path / "run" / "bundle" / "files"
