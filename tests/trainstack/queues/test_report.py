"""What is shown: as text for people, as JSON for programs; and what is left out is said."""

import json
import random
from dataclasses import replace

from tests.trainstack.queues.samples import NOW, hours, job, queue, refused, running, state
from trainstack.queues.report import Report, document, report
from trainstack.queues.state import Refusal, State
from trainstack.queues.table import lines

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


def test_the_report_as_text() -> None:
    text = list(lines(shown(state(JOBS, places=KNOWN))))
    assert text == [
        "dev at 2026-11-25 12:00 UTC",
        "",
        "running (2)",
        "  job  team       GPUs  pool  since  ends by",
        "  b    Blue Team  8     a100  11:30  no deadline",
        "  a    Red Team   8     a100  11:30  14:00",
        "",
        "waiting (3)",
        "  place  job     team       GPUs  queue    since        starts             why",
        "  ~1     other   Blue Team  0     default  11-24 10:00  12:00 (simulated)  "
        "other: Kueue has not looked at it yet",
        "  1      first   Red Team   8     default  11:00        14:00 (simulated)  "
        "quota: needs 8 GPUs in one pool; free: 0 of 16 in a100",
        "  2      second  Red Team   8     default  12:00        15:00 (simulated)  "
        "quota: needs 8 GPUs in one pool; free: 0 of 16 in a100",
        "",
        "pools (1)",
        "  pool  GPUs  used  free  nodes up  free there  on one node  fragmented  stranded",
        "  a100  16    16    0     2         0           0            0%          0%",
        "note: jobs that hold GPUs without a deadline (label kueue.x-k8s.io/max-exec-time-seconds): 1; "
        "starts behind them cannot be simulated",
        "note: places with ~ are by priority and age: Kueue told none",
    ]


def test_the_report_as_json_has_the_same_and_a_schema() -> None:
    found = json.loads(json.dumps(document(shown(state(JOBS, places=KNOWN)))))
    assert found["schema"] == "trainstack.queue/1"
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
    assert found.notes[0] == "nodes cannot be read: Forbidden"
    assert any("jobs of other teams are not shown" in note for note in found.notes)
    assert [row.estimate.kind for row in found.waiting if row.estimate] == ["unknown", "unknown"]
    assert "pools (0)" in list(lines(found))


def test_an_empty_queue_is_no_error() -> None:
    found = shown(state([], queues=[queue("red")]))
    assert not found.running and not found.waiting
    assert found.pools[0].fragmentation is None  # nobody asked for anything
    assert "running (0)" in list(lines(found))


def test_the_order_of_the_listing_does_not_matter() -> None:
    made = state(JOBS, places=KNOWN)
    for seed in range(5):
        jobs = list(made.jobs)
        random.Random(seed).shuffle(jobs)
        assert document(shown(replace(made, jobs=tuple(jobs)))) == document(shown(made))
