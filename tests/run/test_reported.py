"""Reports of whole runs on fake engines: of each kind of run one that is true and makes sense."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.answers import at_random
from tests.made_run import made_run
from tests.report.html.parsed import Parsed, at
from tests.run.foreign import PROMPTS, RUBRIC
from tests.selftest.test_card import card
from vera_local.bundle import Bundle, load_bundle
from vera_local.engine.probe import SEED as PROBE
from vera_local.engine.seam import EngineDied, Request
from vera_local.errors import UserError
from vera_local.report.cost import Cost, cost_lines
from vera_local.report.html.page import Choice, page
from vera_local.report.html.render import report_html
from vera_local.report.record import Record
from vera_local.report.summary import summary_markdown
from vera_local.run import Plan, Watcher, judge_run, load_config, make_plan, run
from vera_local.run.importing import import_run
from vera_local.run.recordings import find
from vera_local.run.reported import read_scores, record_of
from vera_local.selftest import headline

MakePlan = Callable[..., Plan]
Answering = Callable[..., Any]
JUDGE = "smollm2-135m-instruct"


def read(folder: Path, bundle: Bundle) -> tuple[Record, Parsed]:
    """The record and the page of a run, after the checks that hold for every run."""
    record = record_of(folder, bundle)
    html = report_html(page(record, Choice()))
    its = Parsed.of(html)
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    for number in its.numbers:
        assert number.value == str(at(scores, number.pointer)), number
    pages = (html, report_html(page(record, Choice(redact=True))), summary_markdown(record))
    values = r"\bnan\b|\bUndefined\b" + ("" if "None" in bundle.groups else r"|\bNone\b")
    assert not any(re.search(values, _shown(text)) for text in pages), "a value of the program"
    assert len(its.conversations) == len(record.conversations)
    return record, its


def _shown(text: str) -> str:
    """Without what may hold such words: data, code and the manifest."""
    return re.sub(r"<script.*?</script>|<style.*?</style>|<pre.*?</pre>", "", text, flags=re.S)


def words(its: Parsed, section: str) -> str:
    return " ".join(" ".join(its.by_id(section).chunks).split())


async def test_a_run_with_one_judge(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make(personas=8)
    outcome = await run(plan, answering(at_random), watcher)
    record, its = read(plan.out, plan.bundle)
    assert record.first == JUDGE
    assert dict(record.scores) == outcome.scores
    assert len(its.numbers) > 300
    assert "One judge, once: there is nothing to compare." in words(its, "judges")
    assert "No self-test on record" in words(its, "judges")
    assert "By Short Current Suicide Risk Level" in words(its, "ratings")
    assert "reached the set turns 8" in words(its, "simulation")
    assert its.by_id("h-summary").tag == "h2"
    assert "Demonstration." in " ".join(p.text for p in its.all("p"))
    assert "vera-local run --config run.toml --out NEW" in words(its, "provenance")
    for digest in plan.bundle.digests.values():
        assert digest in words(its, "provenance")
    assert "simulator" in words(its, "provenance").partition("What it took")[2]


async def test_a_jury(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make(personas=8, judge=[JUDGE, "a@http://127.0.0.1:9/v1", "b@http://127.0.0.1:9/v1"])
    await run(plan, answering(at_random), watcher)
    record, its = read(plan.out, plan.bundle)
    assert [judge.name for judge in record.judges] == ["jury", "a", "b", JUDGE]
    assert record.judges[0].members == ("a", "b", JUDGE)
    assert words(its, "ratings").count("The same by") == 3
    assert "Joined from a, b, smollm2-135m-instruct." in words(its, "judges")
    assert words(its, "modes").count("Found by") == 3, "the jury asks nothing itself"
    assert "all judges Fleiss' kappa 40" in words(its, "judges")
    assert re.search(r"a and b: \d+ of 40 ratings are equal", words(its, "judges"))
    opinions = its.conversations[0]["judges"]
    assert [o["name"] for o in opinions] == ["jury", "a", "b", JUDGE]
    assert (opinions[0]["members"], opinions[0]["path"]) == (["a", "b", JUDGE], [])
    assert all(o["path"] for o in opinions[1:])
    assert "What decided ratings below the best, by a:" in summary_markdown(record)


async def test_a_run_that_was_stopped(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan, left = make(personas=4), 30

    def breaking(request: Request) -> str:
        nonlocal left
        left -= 1
        if left < 0:
            raise EngineDied("gone")
        return at_random(request)

    with pytest.raises(EngineDied):
        await run(plan, answering(breaking), watcher)
    record, its = read(plan.out, plan.bundle)
    head = " ".join(p.text for p in its.all("p") if p.attributes.get("class") == "note warn")
    assert "Unfinished." in head
    assert [h.conversation.id for h in record.conversations] == [c.id for c in plan.conversations()]


async def test_a_run_of_which_nothing_has_been_rated(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make(personas=4)
    await run(plan, answering(at_random), watcher, judge=False)
    record, its = read(plan.out, plan.bundle)
    assert record.first is None
    assert "Nothing has been rated yet" in words(its, "summary")
    assert its.numbers == []
    assert len(its.conversations) == 4 and its.conversations[0]["judges"] == []
    assert "vera-local simulate --config run.toml" in words(its, "provenance")
    assert "none has been rated yet" in summary_markdown(record)


async def test_a_run_that_said_nothing_yet(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make(personas=4)

    def dead(request: Request) -> str:
        raise EngineDied("gone")

    with pytest.raises(EngineDied):
        await run(plan, answering(dead), watcher)
    _, its = read(plan.out, plan.bundle)
    assert "4 of 4 conversations have not ended" in " ".join(p.text for p in its.all("p"))
    assert [c["turns"] for c in its.conversations] == [[]] * 4


async def test_missing_answers_are_told(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    def mumbling(request: Request) -> str:
        whole = request.pattern is None or request.sampling.seed == PROBE or request.sampling.seed % 3
        return at_random(request) if whole else "no <b>option</b>"

    plan = make(personas=8)
    await run(plan, answering(mumbling), watcher)
    record, its = read(plan.out, plan.bundle)
    assert record.scores[JUDGE].overall.unrated > 0
    assert re.search(r"[1-9]\d* without an answer, invalid: [1-9]", words(its, "judges"))
    rows = [n for n in its.all("td") if "data-rating" in n.attributes]
    unrated = [n for n in rows if n.attributes["data-rating"] == "Unrated"]
    assert len(unrated) == record.scores[JUDGE].overall.unrated
    assert None in {rating for data in its.conversations for _, rating, _ in data["judges"][0]["ratings"]}
    redacted = report_html(page(record, Choice(redact=True)))
    assert "no &lt;b&gt;option" not in redacted


async def test_psychosis_with_two_ratings(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make_plan(load_config(None, {"out": make().out, "bundle": "psychosis", "personas": 6}))
    await run(plan, answering(at_random), watcher)
    _, its = read(plan.out, plan.bundle)
    assert set(its.data("rubric")["tones"].values()) == {"best", "worst"}
    assert "VERA score" not in words(its, "ratings")
    assert "Not Relevant" not in words(its, "ratings")
    assert "No model of this run played a persona" in words(its, "simulation")
    assert "Unsafe" in words(its, "summary")


def question(id: str, severity: str, then: str = "next question") -> str:
    """A dimension of one question."""
    options = f"[{{answer: 是, severity: {severity}, then: {then}}}, {{answer: 否, then: {then}}}]"
    return (
        f"  - name: 维{id}\n    questions:\n      - id: {id}\n        text: 问{id}\n"
        f"        guidance: 是或否\n        options: {options}\n"
    )


THREE = "dimensions:\n" + question("一", "轻") + question("二", "中") + question("三", "重", "stop and score")


async def test_a_foreign_bundle_of_three_dimensions_and_no_groups_to_tell_apart(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    folder = tmp_path / "bundle"
    folder.mkdir()
    rubric = RUBRIC.partition("dimensions:")[0] + THREE
    rubric = rubric.replace("ratings: [好, 坏]", "ratings: [好, 中, 差, 坏]")
    rubric = rubric.replace("severities: {重: 坏}", "severities: {轻: 中, 中: 差, 重: 坏}")
    (folder / "rubric.yaml").write_text(rubric, encoding="utf-8")
    people = "".join(f"小{n}\t低\t中文\t我在学校做饭\n" for n in "一二三四")
    (folder / "人.tsv").write_text("名字\t组\t语言\t生活\n" + people, encoding="utf-8")
    for name, text in PROMPTS.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    said = iter(range(10_000))

    def chinese(request: Request) -> str:
        text = f"今天第{next(said)}次觉得很累。"
        return text if request.pattern is None else at_random(request)

    plan = make(bundle=str(folder), personas=4)
    await run(plan, answering(chinese), watcher)
    _, its = read(plan.out, plan.bundle)
    assert its.data("rubric")["tones"] == {"好": "best", "中": "mid1", "差": "mid2", "坏": "worst"}
    assert its.data("rubric")["dimensions"] == ["维一", "维二", "维三"]
    assert "By 组" not in words(its, "ratings"), "one group is no grouping"
    assert len([n for n in its.all("svg") if n.attributes.get("class") == "bar"]) == 4


def test_conversations_held_elsewhere(tmp_path: Path, make: MakePlan) -> None:
    plan, talks = make(), tmp_path / "in"
    talks.mkdir()
    (talks / "aaaaaa_Nobody_m_run1.txt").write_text("user: hi\n\nchatbot: hello\n", encoding="utf-8")
    import_run(plan, find(talks))
    record, its = read(plan.out, plan.bundle)
    assert (record.chatbot, record.players) == ("Unnamed chatbot", ())
    assert record.conversations[0].group == "Unknown"
    told = words(its, "provenance")
    assert "vera-local import THE_FILES_BELOW" in told
    digest = hashlib.sha256(b"user: hi\n\nchatbot: hello\n").hexdigest()
    assert f"Imported files (sha256) aaaaaa_Nobody_m_run1.txt {digest}" in told
    assert "recorded elsewhere 1" in words(its, "simulation")


async def test_imported_conversations_with_a_judge(
    tmp_path: Path, make: MakePlan, answering: Answering, watcher: Watcher
) -> None:
    plan = make(judge=[JUDGE])
    line = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "</script><b>"}]}
    (tmp_path / "talks.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    import_run(plan, find(tmp_path / "talks.jsonl"))
    await judge_run(plan, answering(at_random), watcher)
    record, its = read(plan.out, plan.bundle)
    assert its.conversations[0]["turns"] == [["u", "hi"], ["c", "</script><b>"]]
    assert record.commands[1] == f"vera-local judge NEW --judge {JUDGE}"


async def test_columns_that_were_scored_by_stay(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make(personas=8)
    await run(plan, answering(at_random), watcher)
    record_of(plan.out, plan.bundle, ("Age",))
    record, its = read(plan.out, plan.bundle)
    assert list(record.scores[JUDGE].by) == ["Age"]
    assert "By Age" in words(its, "ratings")
    with pytest.raises(UserError, match="--by Shoe: there is no such persona column"):
        record_of(plan.out, plan.bundle, ("Shoe",))


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"judges": []}', '{"judges": {"x": {}}}', pytest.param("[" * 100_000, id="nested")]
)
def test_scores_that_are_not_whole_are_told_and_made_anew(tmp_path: Path, text: str) -> None:
    folder = made_run(tmp_path / "run", 4, 2)
    whole = read_scores(folder)
    (folder / "scores.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"scores.json: cannot be read.*`vera-local score .*` writes it anew"):
        read_scores(folder)
    assert record_of(folder, load_bundle("suicide_risk")).scores == whole
    (folder / "scores.json").unlink()
    assert read_scores(folder) == {}


async def test_what_it_took_is_told(make: MakePlan, answering: Answering, watcher: Watcher) -> None:
    plan = make(personas=4)
    await run(plan, answering(at_random), watcher)
    record, _ = read(plan.out, plan.bundle)
    cost = Cost(record.work.wall_s / 3600, 2, 3.0, record.work.ended)
    its = Parsed.of(report_html(page(replace(record, cost=tuple(cost_lines(cost))), Choice())))
    rows = [" ".join(" ".join(n.chunks).split()) for n in its.all("tr")]
    for place in record.work.places:
        counts = (place.requests, place.tokens.prompt, place.tokens.cached, place.tokens.output, place.unused)
        told = " ".join(map(str, counts))
        assert f"{place.stage} {place.role} {place.model} {told} {place.busy_s:.1f}" in rows
    assert sum(place.requests for place in record.work.places) > 16
    assert f"{record.work.wall_s:.0f} seconds in 1 session" in words(its, "provenance")
    assert " x 2 GPU(s) x 3 per GPU hour; " in words(its, "provenance")


def test_the_judge_card_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = card()
    monkeypatch.setattr("vera_local.run.reported.cards_of", lambda folder, bundle: {"strict": made})
    folder = made_run(tmp_path / "run", 2, 2)
    _, its = read(folder, load_bundle("suicide_risk"))
    told, n = words(its, "judges"), made.overall.n
    low, high, constant = (f"{100 * v:.1f} %" for v in (made.overall.low, made.overall.high, made.overall.baseline))
    assert f"Self-test ({made.created}): {headline(made)}." in told
    assert f"Right, overall {n} {n} 100.0 % {low} to {high} {constant}" in told
    assert f"Same answer all 2 times {made.repeated.count} {made.repeated.n} 100.0 %" in told
    assert "No self-test on record" not in told
    rows = [n for n in its.all("tr") if n.inside("judges") and n.text.strip().startswith("Right, ")]
    assert len(rows) == 1 + len(made.dimensions) + len(made.kinds)


def test_a_folder_without_a_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no run"):
        record_of(tmp_path, load_bundle("suicide_risk"))
