"""Waiting jobs, past waits and jobs that resume."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.trainstack.queues.samples import NOW, POOL, condition, hours, job, running, state
from trainstack.capacity.demand import LEAST_WAITS, declared, demand, share


def test_waiting_jobs_count_by_the_pool_that_they_try_first() -> None:
    waiting = [job("a", longest=hours(2)), job("b", gpus=4, pods=2, longest=hours(1)), job("c")]
    (found,) = demand(state([*waiting, job("cpu", gpus=0), running("d")]), {})
    assert (found.flavor, found.jobs, found.gpus, found.without_limit) == (POOL, 3, 24, 1)
    assert found.gpu_hours == 8 * 2 + 8 * 1
    assert (found.waits, found.p50_minutes, found.p95_minutes) == (1, 30, None)


def test_quantiles_need_enough_waits_and_leave_out_evicted_jobs() -> None:
    admitted = [condition(since=NOW - hours(1) + hours(n / 60)) for n in range(1, LEAST_WAITS + 1)]
    jobs = [
        replace(running(str(n)), conditions={"QuotaReserved": one, "Admitted": one})
        for n, one in enumerate(admitted)
    ]
    (found,) = demand(state([*jobs, replace(running("again"), evictions=1)]), {})
    assert (found.waits, found.p50_minutes, found.p95_minutes) == (20, 10, 19)


def test_queues_that_cannot_be_read_leave_the_pool_unknown() -> None:
    (found,) = demand(replace(state([job("a")]), cluster_queues=None), {})
    assert (found.flavor, found.gpus) == ("", 8)


@pytest.mark.parametrize(
    ("minutes", "expected"), [({}, 0.0), ({"trainstack.dev/checkpoint-minutes": "10"}, 0.25)]
)
def test_the_share_of_gpus_whose_jobs_declare_checkpoints(minutes: dict[str, str], expected: float) -> None:
    jobs = [running("a"), running("b", gpus=24), job("waits")]
    owner: dict[str, Any] = {
        "kind": "Job",
        "metadata": {"namespace": "red", "name": "a", "annotations": minutes},
    }
    known = declared([owner])
    assert share(jobs, known, {}) == expected and share([], known, {}) is None


def test_shares_of_gpus_count_as_their_part() -> None:
    """8 shares of a fourth are two GPUs, in the queue and beside whole GPUs."""
    (found,) = demand(state([job("a", longest=hours(2))]), {POOL: 4})
    assert (found.gpus, found.gpu_hours) == (2, 4)
    owner = {
        "kind": "Job",
        "metadata": {
            "namespace": "red",
            "name": "a",
            "annotations": {"trainstack.dev/checkpoint-minutes": "10"},
        },
    }
    other = replace(running("b"), assigned={("whole", "nvidia.com/gpu"): Decimal(8)})
    assert share([running("a"), other], declared([owner]), {POOL: 4}) == pytest.approx(0.2)
