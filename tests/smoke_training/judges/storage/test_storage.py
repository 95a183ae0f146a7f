from typing import Any

import pytest

from smoke_training.judges.storage import loader
from smoke_training.judges.storage import throughput as storage
from smoke_training.model import Cause, Check, Verdict
from smoke_training.statistics.slowness import HALVED, TOLERATED
from tests.smoke_training.samples import lines, parsed, plan, storages

CHECKPOINTS = {"name": "checkpoints", "path": "/mnt/checkpoints", "write_mb_s": None, "source": None}


def judged(*found: dict[str, Any], write: bool = True, **plan_changes: Any) -> Check:
    judge = storage.write if write else storage.read
    check = judge(plan(**plan_changes), parsed([lines()[0], *found]))
    assert check is not None
    return check


@pytest.mark.parametrize("write", [True, False])
def test_one_slow_node_fails_by_name_with_figure_and_interval(write: bool) -> None:
    check = judged(storages(2.0), write=write)
    assert check.status is Verdict.FAIL
    assert check.zone == (TOLERATED, HALVED)
    (culprit,) = check.culprits
    assert (culprit.kind, culprit.id, culprit.cause) == ("storage", "scratch@1", Cause.SLOW_STORAGE)
    assert culprit.node == "smoke-ab-1"
    assert culprit.score == pytest.approx(2.0, rel=0.1)
    assert culprit.ci is not None
    assert culprit.ci[0] < 2.0 < culprit.ci[1]
    assert "other nodes" in check.message
    assert check.measured is not None
    assert check.measured.ci is not None
    assert check.measured.value is not None
    assert check.measured.ci[0] < check.measured.value < check.measured.ci[1]


@pytest.mark.parametrize("factor", [0.8, 1.0, 1.3])
def test_nodes_within_the_tolerated_factor_pass(factor: float) -> None:
    assert judged(storages(factor)).status is Verdict.PASS


def test_all_nodes_below_the_declared_rate_accuse_the_storage_itself() -> None:
    # 4 MiB in 5 ms are 839 MB/s.
    declared = [{**CHECKPOINTS, "write_mb_s": 1678, "source": "the file system's tier"}]
    check = judged(storages(name="checkpoints"), storage=declared)
    assert check.status is Verdict.FAIL
    assert [culprit.id for culprit in check.culprits] == ["checkpoints"]
    assert check.expected is not None
    assert check.expected.value == 1678 and "tier" in check.expected.source
    assert check.expected.floor == pytest.approx(1678 / 1.5)
    assert "declared 1678 MB/s" in check.message
    fine = [{**CHECKPOINTS, "write_mb_s": 839, "source": None}]
    assert judged(storages(name="checkpoints"), storage=fine).status is Verdict.PASS


def test_one_node_below_the_declared_rate_is_the_only_one_accused() -> None:
    declared = [{**CHECKPOINTS, "write_mb_s": 839, "source": None}]
    check = judged(storages(2.2, name="checkpoints"), storage=declared)
    assert [culprit.id for culprit in check.culprits] == ["checkpoints@1"]


def test_where_no_node_is_shown_to_reach_the_declared_rate_none_is_accused_alone() -> None:
    """One clearly too slow, the other about at the limit: neither is slower than its peers."""
    declared = [{**CHECKPOINTS, "write_mb_s": 839 * 1.51, "source": None}]
    check = judged(storages(1.25, name="checkpoints"), storage=declared)
    assert check.status is Verdict.FAIL
    assert check.measured is not None
    factors = [row["factor"] for row in check.measured.detail["targets"][0]["factors"]]  # type: ignore[index]
    assert factors[-2] == pytest.approx(TOLERATED, rel=0.03) and factors[-1] > 1.8
    assert [(culprit.id, culprit.node) for culprit in check.culprits] == [("checkpoints", None)]


def test_disks_that_are_all_slow_are_no_silent_pass() -> None:
    slow = {**storages(), "stream_mb_s": [20.3, 20.1]}
    check = judged(slow)
    assert (check.status, check.required, check.culprits) == (Verdict.INCONCLUSIVE, True, ())
    assert "20.1 MB/s" in check.message
    assert "declare its write_mb_s" in str(check.next_action)
    alone = {**storages(), "stream_mb_s": [20.3], "nodes": [0]}
    for key in ("write", "write_queue", "read", "read_queue", "resident_share", "first_write_mb_s", "open"):
        alone[key] = alone[key][:1]
    assert (judged(alone, nodes=1).status, judged(alone, nodes=1).required) == (Verdict.INCONCLUSIVE, True)
    declared = [{**CHECKPOINTS, "write_mb_s": 839, "source": None}]
    assert judged({**slow, "name": "checkpoints"}, storage=declared).status is Verdict.PASS
    assert judged({**storages(2.0), "stream_mb_s": [20.3, 20.1]}).status is Verdict.FAIL
    assert judged(slow, write=False).status is Verdict.PASS


def test_one_node_without_a_declared_rate_is_reported_and_not_judged() -> None:
    alone = storages()
    for key in ("write", "write_queue", "read", "read_queue", "resident_share", "first_write_mb_s", "open"):
        alone[key] = alone[key][:1]
    check = judged({**alone, "nodes": [0]}, nodes=1)
    assert (check.status, check.required) == (Verdict.SKIPPED, False)
    assert check.measured is not None
    assert check.measured.value == pytest.approx(839, rel=0.05)
    assert "no declared rate" in check.message


@pytest.mark.parametrize("resident", [[0.0, 0.5], [0.0, None]])
def test_a_warm_cache_is_said_and_not_judged(resident: list[float | None]) -> None:
    check = judged({**storages(3.0), "resident_share": resident}, write=False)
    assert (check.status, check.required) == (Verdict.SKIPPED, False)
    assert check.measured is not None
    assert check.measured.detail["targets"][0]["cache"] == "warm"  # type: ignore[index]
    assert judged({**storages(3.0), "resident_share": resident}).status is Verdict.FAIL  # writes are fsynced


def test_waiting_for_a_busy_processor_is_not_slow_storage() -> None:
    slow = storages(2.0)
    waiting = [[0.0] * 160, [value / 2 for value in slow["write"][1]]]
    assert judged({**slow, "write_queue": waiting}).status is Verdict.PASS
    a_little = [[value * 0.11 for value in slow["write"][1]] for _ in range(2)]
    check = judged({**storages(2.5), "write_queue": a_little})
    assert check.status is Verdict.INCONCLUSIVE
    assert check.culprits == ()


def test_noise_beyond_all_bounds_is_inconclusive() -> None:
    noisy = storages(2.0, repetitions=16)
    noisy["write"][1] = [value * (10 if i % 3 else 0.1) for i, value in enumerate(noisy["write"][1])]
    assert judged(noisy).status is Verdict.INCONCLUSIVE


def test_several_targets_make_one_check_and_the_worst_speaks_first() -> None:
    check = judged(storages(1.0, name="datasets"), storages(2.0, name="checkpoints"))
    assert check.status is Verdict.FAIL
    assert [culprit.id for culprit in check.culprits] == ["checkpoints@1"]
    assert check.message.startswith("node 1 writes")
    assert "writes datasets" in check.message


def refusal(errno: str, **changes: Any) -> dict[str, Any]:
    return {
        "kind": "storage_error", "phase": "storage", "name": "scratch", "path": "/mnt/scratch/x", "rank": 1,
        "node": 1, "operation": "write", "errno": errno, "message": "No space left on device",
        "bytes_wanted": 4096, "bytes_free": 12, **changes,
    }  # fmt: skip


def test_a_full_disk_fails_and_names_path_and_bytes() -> None:
    check = judged(refusal("ENOSPC"))
    assert check.status is Verdict.FAIL
    assert check.culprits[0].cause is Cause.DISK_FULL
    assert (check.culprits[0].id, check.culprits[0].node) == ("scratch@1", "smoke-ab-1")
    for part in ("/mnt/scratch/x", "4096 bytes wanted", "12 free", "rank 1 on node 1"):
        assert part in check.message
    assert judged(refusal("ENOSPC"), write=False).status is Verdict.SKIPPED


def test_a_folder_that_may_not_be_written_is_an_error_not_a_pass() -> None:
    check = judged(refusal("EACCES", message="Permission denied", bytes_wanted=None))
    assert (check.status, check.culprits[0].cause) == (Verdict.ERROR, Cause.UNKNOWN)
    assert "EACCES" in check.message


def fed(slow: tuple[float, float] = (0.001, 0.001), **changes: Any) -> Check:
    batches = 128
    line = {
        "kind": "loader", "name": "datasets", "path": "/mnt/datasets", "nodes": [0, 1], "workers": 2,
        "batch_samples": 4, "sample_bytes": 1000, "source": "a test",
        "compute": [[0.04] * batches] * 2,
        "stall": [[slow[rank] * (1 + i % 3 / 10) for i in range(batches)] for rank in (0, 1)],
        "stall_queue": [[0.0] * batches] * 2, "read_seconds": [0.5, 0.5],
        "resident_share": [0.0, 0.0], **changes,
    }  # fmt: skip
    check = loader.utilisation(plan(), parsed([lines()[0], line]))
    assert check is not None
    return check


def test_a_loader_that_keeps_up_passes_with_its_rate() -> None:
    check = fed()
    assert check.status is Verdict.PASS
    assert check.measured is not None
    assert check.measured.value == pytest.approx(0.04 / 0.0411, rel=1e-3)
    assert check.measured.detail["samples_per_s"] == pytest.approx(2 * 4 / 0.0411, rel=1e-2)


def test_a_starving_accelerator_fails_and_says_whether_storage_or_workers_are_slow() -> None:
    storage_bound = fed((0.001, 0.02), read_seconds=[0.5, 14.0])
    assert storage_bound.status is Verdict.FAIL
    culprit = storage_bound.culprits[0]
    assert (culprit.kind, culprit.id, culprit.cause) == ("storage", "datasets@1", Cause.SLOW_STORAGE)
    everywhere = fed((0.02, 0.02), read_seconds=[14.0, 14.0]).culprits
    assert [c.id for c in everywhere] == ["datasets"]
    slow_workers = fed((0.001, 0.02)).culprits[0]
    assert (slow_workers.kind, slow_workers.id, slow_workers.cause) == ("node", "1", Cause.SLOW_COMPUTE)


def test_a_starving_accelerator_on_a_busy_machine_is_inconclusive() -> None:
    check = fed((0.02, 0.02), stall_queue=[[0.01] * 128] * 2)
    assert check.status is Verdict.INCONCLUSIVE
    assert check.culprits == ()
    assert (check.noise["queue_share"] or 0) > 0.1


def test_a_loader_near_the_limit_is_undecided() -> None:
    waits = [[0.0044 * (0.2 if i % 24 < 12 else 1.8) for i in range(128)]] * 2
    assert fed(stall=waits).status is Verdict.INCONCLUSIVE
