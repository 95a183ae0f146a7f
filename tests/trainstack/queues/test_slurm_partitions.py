"""Jobs of Slurm that name several partitions, and nodes that are in several."""

import datetime
from dataclasses import replace

from infra import slurm
from tests.slurm import systems
from trainstack.queues.report import Waiting
from trainstack.slurm import queue
from trainstack.slurm.jobs import SlurmJob, SlurmNode, SlurmState

NOW = datetime.datetime(2026, 11, 30, tzinfo=datetime.UTC)
SYSTEM = slurm.system(systems.spec("dev-aws"), slurm.SystemOptions())
JOB = SlurmJob(
    id="1", name="train", account="research", qos="borrow", partitions=("a100",), state="PD",
    reason="Resources", submitted=NOW, starts=None, ends=None, priority=10, minutes=60, gpus=8, billing=1,
    nodes=1,
)  # fmt: skip
FULL = SlurmNode("a100-1", "a100", usable=True, off=False, gpus=8, used=8)
HALF = SlurmNode("l4-1", "l4", usable=True, off=False, gpus=4, used=2)


def shown(*jobs: SlurmJob, nodes: tuple[SlurmNode, ...] = (FULL, HALF)) -> dict[str, Waiting]:
    state = SlurmState(NOW, jobs, nodes, {}, frozenset(("borrow",)), {}, ())
    return {one.job.partition(" ")[0]: one for one in queue.report(SYSTEM, state).waiting}


def test_a_job_of_several_partitions_waits_for_nodes_of_all() -> None:
    found = shown(replace(JOB, partitions=("a100", "l4")))["1"]
    assert "free: 2 of 12 in a100,l4" in found.reason.text


def test_its_place_is_the_best_and_others_stand_behind_it_in_both() -> None:
    both = replace(JOB, id="3", partitions=("a100", "l4"), priority=5)
    waiting = shown(JOB, both, replace(JOB, id="2", partitions=("l4",), priority=1))
    places = {name: one.place.number for name, one in waiting.items() if one.place}
    assert places == {"1": 1, "3": 1, "2": 2}


def test_a_node_of_two_partitions_is_not_free_in_one_while_a_job_of_the_other_runs() -> None:
    runs = replace(JOB, state="R", partitions=("a100",))
    shared = (FULL, replace(FULL, partition="high"))
    state = SlurmState(NOW, (runs,), shared, {}, frozenset(), {}, ())
    pools = {one.name: (one.gpus, one.used, one.free) for one in queue.report(SYSTEM, state).pools}
    assert pools == {"a100": (8, 8, 0), "high": (8, 8, 0)}
    waits = shown(replace(JOB, id="2", partitions=("a100", "high")), nodes=shared)["2"]
    assert "free: 0 of 8 in a100,high" in waits.reason.text
