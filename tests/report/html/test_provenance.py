"""What a page says of where it comes from."""

from __future__ import annotations

from dataclasses import replace

from tests.report.html.made import held, record
from vera_local.report.html.provenance import Provenance, provenance


def with_network(**noted: object) -> Provenance:
    its = record([held(1, ["a", "b"])])
    return provenance(replace(its, manifest={**its.manifest, **noted}), redact=False)


def test_attempts_to_reach_other_machines_are_told_with_what_became_of_them() -> None:
    attempts = {"refused": 2, "let through": 0}
    its = with_network(network={"guard": "refuse", "hosts": ["a.lab", "b\x1b.lab"], "attempts": attempts})
    assert {fact.name: fact.value for fact in its.facts["Network"]} == {
        "Guard": "refuse",
        "Hosts beyond this machine that it could reach": "a.lab, b\u241b.lab",
        "Attempts to reach others that were refused": "2",
        "Attempts to reach others that were let through": "0",
    }


def test_a_run_without_hosts_says_so_and_one_without_a_record_says_nothing() -> None:
    its = with_network(network={"guard": "refuse", "hosts": [], "attempts": {}})
    assert [fact.value for fact in its.facts["Network"]] == ["refuse", "none"]
    assert "Network" not in with_network().facts
