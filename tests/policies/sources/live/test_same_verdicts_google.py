"""Recorded states, reported by Asset Inventory: rules have the same outcomes for both."""

import datetime
import json
from pathlib import Path

import pytest

from policies.evaluate import RuleOutcome, evaluate
from policies.rules import CATALOG
from policies.settings import RuleSettings
from policies.sources import state
from policies.sources.live.records import account
from policies.sources.live.tables import tables
from policies.stack import Stack
from tests.policies.recording.example import rule_of
from tests.policies.recording.recordings import VERDICTS, export, keys, rows
from tests.policies.sources.live.google_assets import MAKERS, UNSEEN, filled
from tests.policies.sources.live.google_fields import held
from tests.trainstack.collect.project import ID
from trainstack.collect.gcp.project import collect

SETTINGS = RuleSettings(today=datetime.date(2026, 11, 23))
# What only a program, or a cluster, could say: a project leaves it open, and names it.
OPEN = {
    ("MLS-GPU-05.gke", "fail"): ("in its clusters", {"undetermined"}),  # an alarm that a cluster raises
    ("MLS-GPU-08.gke", "fail"): ("in its clusters", {"undetermined"}),  # a driver that a DaemonSet installs
    ("MLS-TRK-02.gcp", "pass"): ("deletionProtection", {"undetermined"}),
    ("MLS-TRK-02.gcp", "fail"): ("deletionProtection", {"undetermined", "fail"}),
}
KINDS = {key: {row["type"] for verdict in VERDICTS for row in rows(key, verdict)} for key in keys()}
EXAMPLES = [
    key
    for key, kinds in KINDS.items()
    if all(kind.startswith("gcp:") for kind in kinds) and not kinds & tables("gcp").unreported.keys()
]


def test_every_example_of_google_is_reported() -> None:
    """All but one: MLS-K8S-09 is about what is in a cluster."""
    assert len(EXAMPLES) >= 32
    assert {key.split("-")[1] for key in EXAMPLES} >= {
        "COST",
        "GPU",
        "IAM",
        "NET",
        "REP",
        "STO",
        "TAG",
        "TRK",
    }


@pytest.mark.parametrize("verdict", ["pass", "fail"])
@pytest.mark.parametrize("key", EXAMPLES)
def test_a_rule_has_the_same_outcome_for_project_and_state(key: str, verdict: str, tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text(json.dumps(export(key, verdict)))
    kept, rule = state.read(file), CATALOG.rules[rule_of(key)]
    assert {one.kind for one in kept} <= {*MAKERS, *UNSEEN}
    project, ids = filled(kept)
    assert not held(project)
    reported = account(collect(ID, project.session()))
    assert not reported.coverage.refused
    by_state = _results(evaluate(Stack(kept, SETTINGS), [rule]), {one.urn: one.urn for one in kept})
    outcomes = evaluate(Stack(reported.resources, SETTINGS, reported.coverage), [rule])
    by_project = _results(outcomes, ids)
    assert verdict in {result for results in by_state.values() for result in results}
    if (key, verdict) in OPEN:
        why, left = OPEN[key, verdict]
        (open_,) = (one for one in outcomes if one.result == "undetermined")
        assert open_.resource is not None
        assert why in open_.message
        by_state[ids[str(open_.resource.id)]] = left
    for urn, results in by_state.items():
        assert by_project.get(urn) == results


def _results(outcomes: list[RuleOutcome], urns: dict[str, str]) -> dict[str, set[str]]:
    """By URN, without what the project has besides."""
    found: dict[str, set[str]] = {}
    for one in outcomes:
        known = one.resource and (urns.get(one.resource.urn) or urns.get(str(one.resource.id)))
        urn = known if one.resource else "the stack"
        if urn:
            found.setdefault(urn, set()).add(one.result)
    return found
