"""Storage, checkpoints and resume in real jobs, healthy and damaged from outside."""

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smoke_training import verdict
from smoke_training.evidence.training import Numerics
from smoke_training.model import Cause, Verdict
from smoke_training.plan import parse
from smoke_training.runtime.launch import RESTART_PATIENCE_S
from tests.smoke_training.jobs import Job, check, partial_job


def target(path: Path) -> list[dict[str, Any]]:
    return [{"name": "checkpoints", "path": str(path), "write_mb_s": None, "source": None}]


@pytest.fixture(scope="module")
def healthy(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, str]:
    """Two nodes whose checkpoints go to a target of the plan, at full depth because of the loader."""
    home = tmp_path_factory.mktemp("healthy")
    (home / "target").mkdir()
    phases = ("storage", "loader", "checkpoint", "resume")
    job = partial_job(archive, home, phases, storage=target(home / "target"), depth="full")
    return job, job.finish()


def test_storage_and_loader_are_measured_on_every_node(healthy: tuple[Job, str]) -> None:
    job, output = healthy
    result = job.result()
    for name, unit in (("storage.write", "MB/s"), ("storage.read", "MB/s"), ("loader.utilisation", "ratio")):
        found = check(result, name)
        # A disk or a processor that others keep busy may leave the answer open, never turn it into FAIL.
        assert found["status"] in (Verdict.PASS, Verdict.INCONCLUSIVE), output
        assert (found["measured"]["unit"], found["measured"]["value"] > 0) == (unit, True)
    written = check(result, "storage.write")["measured"]["detail"]["targets"][0]
    assert [rate["node"] for rate in written["mb_s"]] == [0, 1]
    assert written["name"] == "checkpoints"


def test_asynchronous_checkpoints_are_timed_committed_and_come_back(healthy: tuple[Job, str]) -> None:
    result = healthy[0].result()
    found = check(result, "checkpoint.commit")
    assert found["status"] == Verdict.PASS
    detail = found["measured"]["detail"]
    assert detail["bytes"] > 2 * 32 * (1 << 20)
    assert 0 < detail["stall_s"] < found["measured"]["value"]
    # On two ranks, of each of six layers its weight and three entries of its optimizer, and all settings.
    assert detail["entries"] == 2 * (6 * 4 + 1)
    # Two ranks, seven ways to tear a checkpoint: the timed one, and the one that was resumed from.
    assert check(result, "checkpoint.torn_refused")["measured"]["n"] == 2 * (7 + 7)


def test_the_resumed_run_is_the_interrupted_one(healthy: tuple[Job, str]) -> None:
    result = healthy[0].result()
    equality = check(result, "resume.equality")
    assert equality["status"] == Verdict.PASS
    assert equality["measured"]["value"] == 0
    assert equality["measured"]["detail"]["losses_compared"] >= 2 * 5
    assert check(result, "checkpoint.integrity")["status"] == Verdict.PASS
    recovery = check(result, "resume.recovery")
    assert recovery["status"] == Verdict.PASS
    assert recovery["measured"]["value"] > 0


def test_gradients_of_the_uninterrupted_run_are_watched_as_well(healthy: tuple[Job, str]) -> None:
    (record,) = healthy[0].found().all_of(Numerics)
    assert (record.phase, record.nonfinite, record.differing) == ("reference", (), ())
    assert record.passes == len(record.steps) >= 10
    assert all(len(set(sums)) == 1 for sums in zip(*record.checksums, strict=True))


def test_nothing_is_left_on_the_storage(healthy: tuple[Job, str]) -> None:
    assert list((healthy[0].home / "target").iterdir()) == []


# A rank of the first attempt that never ends by itself, as one that waits in NCCL for a peer that is gone.
ENDLESS = """
import os, time
leave = os._exit
os._exit = lambda status: (
    time.sleep(3600) if os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0" else leave(status)
)
"""


@pytest.fixture(scope="module")
def torn(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, dict[str, Any], str]:
    """After the kill, before the ranks are back, half of a committed shard of node 1 disappears.

    The rank that was not killed does not notice that its peer is gone.
    """
    site = tmp_path_factory.mktemp("site")
    (site / "sitecustomize.py").write_text(ENDLESS)
    plan = {"nodes": 2, "ranks_per_node": 1, "gpus_per_node": 0, "phases": ["resume"]}
    job = Job(archive, tmp_path_factory.mktemp("torn"), plan=plan, PYTHONPATH=str(site))
    hit: dict[str, Any] = {}
    injector = threading.Thread(target=tear_after_the_kill, args=(job.home, hit))
    injector.start()
    output = job.finish()
    injector.join()
    return job, hit, output


def tear_after_the_kill(home: Path, hit: dict[str, Any]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not any(home.glob("node-*/killed.json")):
        time.sleep(0.01)
    root = home / "node-1" / "checkpoints"
    committed = sorted(path.parent for path in root.glob("step-*/commit-node-1.json"))
    if committed:
        (shard,) = committed[-1].glob("__1_*.distcp")
        os.truncate(shard, shard.stat().st_size // 2)
        hit["step"] = int(committed[-1].name.removeprefix("step-"))
        hit["path"] = str(shard.parent)


def test_a_checkpoint_torn_from_outside_fails_by_name_and_the_one_before_is_used(
    torn: tuple[Job, dict[str, Any], str],
) -> None:
    job, hit, output = torn
    assert hit, f"the injector came too late: {output}"
    result = job.result()
    found = check(result, "checkpoint.integrity")
    assert found["status"] == Verdict.FAIL
    culprit = found["culprits"][0]
    assert (culprit["id"], culprit["cause"]) == ("checkpoints@1", Cause.TORN_CHECKPOINT)
    assert hit["path"] in culprit["evidence"][0]
    detail = found["measured"]["detail"]
    assert detail["committed"] == hit["step"]
    assert detail["resumed_from"] == hit["step"] - 4
    assert check(result, "resume.equality")["status"] == Verdict.PASS
    assert result["verdict"] == Verdict.FAIL


def test_a_rank_that_outlives_the_kill_of_its_peer_is_ended_so_that_all_start_again(
    torn: tuple[Job, dict[str, Any], str],
) -> None:
    result = torn[0].result()
    assert check(result, "resume.equality")["status"] == Verdict.PASS, torn[2]
    assert check(result, "resume.recovery")["measured"]["value"] > RESTART_PATIENCE_S


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for one checkpoint of the resume phase, not for two."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    where = tmp_path / "small"
    where.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1900k", "tmpfs", str(where)], check=False, capture_output=True
    )
    if made.returncode:
        pytest.skip(f"tmpfs cannot be mounted here: {made.stderr.decode().strip()}")
    yield where
    subprocess.run(["umount", str(where)], check=True)


def test_a_full_disk_fails_with_path_and_bytes_and_leaves_nothing_half_done(
    archive: Path, tmp_path: Path, small_disk: Path
) -> None:
    phases, where = ("checkpoint", "resume"), target(small_disk)
    job = partial_job(archive, tmp_path / "job", phases, nodes=1, ranks=2, storage=where)
    began = time.monotonic()
    output = job.finish()
    result = job.result()
    for name in ("checkpoint.commit", "checkpoint.integrity"):
        found = check(result, name)
        assert found["status"] == Verdict.FAIL, output
        assert {culprit["cause"] for culprit in found["culprits"]} == {Cause.DISK_FULL}
        assert str(small_disk) in found["message"]
        assert "bytes wanted" in found["message"]
        assert "left behind" not in found["message"]
        assert "DAMAGED" not in found["message"]
    assert "still complete" in check(result, "checkpoint.integrity")["message"]
    assert time.monotonic() - began < 100
    assert list(small_disk.iterdir()) == []


def test_checkpoints_that_cannot_be_read_end_in_an_error_that_names_them(
    archive: Path, tmp_path: Path
) -> None:
    job = partial_job(archive, tmp_path, ("resume",), nodes=1, ranks=1)
    blocker = threading.Thread(target=make_unreadable_after_the_kill, args=(tmp_path,))
    blocker.start()
    output = job.finish()
    blocker.join()
    result = job.result()
    found = check(result, "checkpoint.integrity")
    assert found["status"] == Verdict.ERROR, output
    assert "__0_0.distcp" in found["message"]
    assert "no step in" in found["message"]
    assert result["verdict"] == Verdict.ERROR


def make_unreadable_after_the_kill(home: Path) -> None:
    """A folder in the place of every shard: reading it fails for root too, as permissions would not."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (home / "node-0" / "killed.json").exists():
        time.sleep(0.01)
    for shard in (home / "node-0" / "checkpoints").glob("step-*/__0_0.distcp"):
        shard.unlink()
        shard.mkdir()


def test_the_samples_of_a_healthy_job_lead_to_the_same_verdict_offline(healthy: tuple[Job, str]) -> None:
    job, _ = healthy
    judged = verdict.judge(parse((job.home / "plan-0.json").read_text()), job.found())
    again = {item.id: item.status for item in judged.checks}
    recorded = {item["id"]: item["status"] for item in job.result()["checks"]}
    assert {name: str(status) for name, status in again.items() if name in recorded} == {
        name: status for name, status in recorded.items() if name in again
    }
