"""A run folder that was copied elsewhere opens, reports and goes on; a bundle that lies elsewhere now is named."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kept import must_be_the_same
from tests.run.conftest import MakePlan, Opened
from tests.run.test_reviving import Failing
from tests.victims import at_random
from vera_local.data import data_root
from vera_local.engine.seam import EngineDied
from vera_local.errors import UserError
from vera_local.report.html.page import Choice, page
from vera_local.report.html.render import report_html
from vera_local.run import Watcher, run, score_run
from vera_local.run.evaluate import bundle_of_run
from vera_local.run.reading import read_run
from vera_local.run.reported import record_of

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


async def test_a_bundle_that_lies_elsewhere_now_is_named_and_can_be_named(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in ("rubric/suicide_risk", "personas"):
        shutil.copytree(data_root() / folder, here / folder)
    plan = make(bundle=str(here / "rubric" / "suicide_risk"))
    first = await run(plan, answering(at_random), watcher)
    here.rename(there)
    with pytest.raises(UserError, match="here/rubric/suicide_risk"):
        bundle_of_run(plan.out)
    opened = answering(at_random)
    again = await run(make(bundle=str(there / "rubric" / "suicide_risk")), opened, watcher)
    assert again.scores == first.scores and not opened.engines
