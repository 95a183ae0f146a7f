"""The queue as tables for people and as JSON for programs, with notes on what is left out."""

import random
from dataclasses import replace

import pytest

from agents.clusters.dispatch import CLUSTER_LABEL
from infra.catalog.kubernetes.kueue import ZONE_LABEL
from tests.trainstack.cli.command import checked
from tests.trainstack.queues.samples import NOW, POOL, hours, job, queue, refused, running, state
from trainstack.cli.output import print_json
from trainstack.queues.report import SCHEMA, Report, document, report
from trainstack.queues.state import Flavor, Node, Pod, Refusal, State
from trainstack.queues.table import tables

TEAMS = {"red": "Red Team", "blue": "Blue Team"}
WORDS = refused("couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu")
JOBS = [
    running("a", ends=2),
    running("b", "blue"),
    job("second", created=NOW, conditions=WORDS, longest=hours(1)),
    job("first", conditions=WORDS, longest=hours(1)),
    job("other", "blue", gpus=0, created=NOW - hours(26)),
]
KNOWN = {("red", "job-first"): 0, ("red", "job-second"): 1}


def shown(made: State, only: str | None = None) -> Report:
    return report(made, "dev", TEAMS, only)


def test_the_report_as_tables() -> None:
    found = shown(state(JOBS, places=KNOWN))
    running_jobs, waiting, pools = ((title, rows) for title, _, rows in tables(found))
    assert running_jobs == (
        "running (2)",
        [
            ("b", "Blue Team", "8", "a100", "11:30", "no deadline"),
            ("a", "Red Team", "8", "a100", "11:30", "14:00"),
        ],
    )
    assert [(row[0], row[1], row[5], row[6], row[7].partition(":")[0]) for row in waiting[1]] == [
        ("~1", "other", "11-24 10:00", "12:00 (simulated)", "other"),
        ("1", "first", "11:00", "14:00 (simulated)", "quota"),
        ("2", "second", "12:00", "15:00 (simulated)", "quota"),
    ]
    assert pools == ("pools (1)", [("a100", "16", "16", "0", "2", "0", "0", "0%", "0%")])
    assert len(found.notes) == 2


def test_a_job_that_a_manager_sent_away_runs_there() -> None:
    """A manager does not learn whether the pods are ready, and has none of them."""
    there = running("away")
    unknown = {key: one for key, one in there.conditions.items() if key != "PodsReady"}
    sent = replace(there, conditions=unknown, cluster="usw2")
    found = shown(state([sent]))
    assert ([one.job for one in found.running], found.waiting) == (["away"], ())
    assert [one.job for one in shown(state([replace(sent, cluster="")])).waiting] == ["away"]


def test_the_size_of_pools_in_other_clusters_is_not_known_here() -> None:
    flavors = {POOL: Flavor(POOL, {"pool": POOL, CLUSTER_LABEL: "usw2"})}
    found = shown(state([running("away")], flavors=flavors))
    assert [(one.gpus, one.used, one.nodes) for one in found.pools] == [(16, 8, None)]


def test_free_gpus_of_a_pool_in_several_zones_are_shown_by_zone(capsys: pytest.CaptureFixture[str]) -> None:
    """A job whose volume or placement is of one zone cannot use those of another."""
    nodes = [
        Node(f"n{zone}{index}", {"pool": POOL, ZONE_LABEL: zone}, 8) for zone in "ba" for index in (0, 1)
    ]
    pods = (Pod("red", "job-busy", "nb0", 4),)
    found = shown(state([running("busy", gpus=4)], nodes=tuple(nodes), pods=pods, queues=[queue("red", 32)]))
    (_, _, pools) = tables(found)
    assert pools[2][0][5] == "28 (a 16, b 12)"
    print_json(SCHEMA, document(found))
    assert checked(capsys.readouterr().out)["pools"][0]["free_by_zone"] == {"a": 16, "b": 12}


def test_the_report_as_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    print_json(SCHEMA, document(shown(state(JOBS, places=KNOWN))))
    found = checked(capsys.readouterr().out)
    assert [row["job"] for row in found["waiting"]] == ["other", "first", "second"]
    first = found["waiting"][1]
    assert first["place"] == {"number": 1, "told": True}
    assert first["since"] == "2026-11-25T11:00:00Z"
    estimate = {"kind": "simulated", "start": "2026-11-25T14:00:00Z", "waits": 1, "why": ""}
    assert first["estimate"] == estimate
    assert found["pools"][0]["free"] == 0
    assert found["running"][1]["ends_by"] == "2026-11-25T14:00:00Z"


def test_a_team_sees_its_own_jobs_and_the_pools() -> None:
    found = shown(state(JOBS), "blue")
    assert {row.team for row in found.running} == {row.team for row in found.waiting} == {"Blue Team"}
    assert found.pools


def test_what_cannot_be_read_is_said() -> None:
    made = replace(
        state(JOBS),
        whole=False,
        nodes=None,
        cluster_queues=None,
        refusals=(Refusal("nodes", "Forbidden"), Refusal("clusterqueues", "Forbidden")),
    )
    found = shown(made, "red")
    assert not found.pools
    assert str(made.refusals[0]) == found.notes[0] and len(found.notes) == 4
    assert [row.estimate.kind for row in found.waiting if row.estimate] == ["unknown", "unknown"]


def test_an_empty_queue_is_no_error() -> None:
    found = shown(state([], queues=[queue("red")]))
    assert not found.running and not found.waiting
    assert found.pools[0].fragmentation is None  # without any job
    assert [title for title, *_ in tables(found)][:2] == ["running (0)", "waiting (0)"]


def test_the_order_of_the_listing_does_not_matter() -> None:
    made = state(JOBS, places=KNOWN)
    for seed in range(5):
        jobs = list(made.jobs)
        random.Random(seed).shuffle(jobs)
        assert document(shown(replace(made, jobs=tuple(jobs)))) == document(shown(made))
