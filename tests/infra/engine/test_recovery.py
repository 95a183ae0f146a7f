"""Recovery of a file backend after a killed engine."""

import contextlib
import datetime
import json
import os
import socket
import threading
from pathlib import Path

import pytest

from infra.engine import recovery

DAY = datetime.timedelta(days=1)


def lock(backend: Path, name: str, pid: int, host: str = "", age: datetime.timedelta | None = None) -> Path:
    path = backend / ".pulumi" / "locks" / "organization" / "p" / "dev" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    when = datetime.datetime.now(datetime.UTC) - (age or datetime.timedelta())
    content = {"pid": pid, "username": "u", "hostname": host or socket.gethostname()}
    path.write_text(json.dumps({**content, "timestamp": when.isoformat()}))
    return path


def test_only_locks_of_the_dead_are_removed(tmp_path: Path) -> None:
    dead = lock(tmp_path, "dead", 2**22 + 1)
    alive = lock(tmp_path, "alive", os.getpid())
    elsewhere = lock(tmp_path, "elsewhere", 2**22 + 1, "another-host")
    reused = lock(tmp_path, "reused", os.getpid(), age=DAY)
    torn = lock(tmp_path, "torn", 1)
    torn.write_text("")
    os.utime(torn, (0, 0))
    with pytest.raises(recovery.LockedError), recovery.locked(tmp_path, "p", "dev"):
        raise AssertionError("two others hold it")
    assert {one.path for one in recovery.locks(tmp_path, "p", "dev")} == {alive, elsewhere}
    lock(tmp_path, "dead", 2**22 + 1)
    alive.unlink()
    elsewhere.unlink()
    with recovery.locked(tmp_path, "p", "dev") as removed:
        assert [one.path for one in removed] == [dead]
        assert [one.pid for one in recovery.locks(tmp_path, "p", "dev")] == [os.getpid()]
    assert recovery.locks(tmp_path, "p", "dev") == []
    assert not reused.exists() and not torn.exists()


def test_of_many_that_come_at_once_at_most_one_holds_the_lock(tmp_path: Path) -> None:
    holding, most = 0, 0
    start = threading.Barrier(8)

    def take() -> None:
        nonlocal holding, most
        start.wait()
        for _ in range(20):
            with contextlib.suppress(recovery.LockedError), recovery.locked(tmp_path, "p", "dev"):
                holding += 1
                most = max(most, holding)
                holding -= 1

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Those who come at the same moment may all give way, as engines do; the next one alone gets it.
    assert most <= 1 and recovery.locks(tmp_path, "p", "dev") == []
    with recovery.locked(tmp_path, "p", "dev"):
        assert len(recovery.locks(tmp_path, "p", "dev")) == 1


def state(backend: Path, text: str) -> Path:
    path = backend / ".pulumi" / "stacks" / "p" / "dev.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_pending_operations_are_read_and_settled(tmp_path: Path) -> None:
    pending = [{"type": "creating", "resource": {"urn": "urn:a"}}]
    latest = {"resources": [{"urn": "urn:b"}], "pending_operations": pending}
    state(tmp_path, json.dumps({"version": 3, "checkpoint": {"stack": "dev", "latest": latest}}))
    assert recovery.pending(tmp_path, "p", "dev") == [("creating", "urn:a")]
    recovery.settle(tmp_path, "p", "dev")
    assert recovery.pending(tmp_path, "p", "dev") == []
    assert recovery.resources(tmp_path, "p", "dev") == [{"urn": "urn:b"}]
    assert recovery.pending(tmp_path, "p", "other") == []


def test_a_half_written_state_gives_way_to_the_backup(tmp_path: Path) -> None:
    path = state(tmp_path, '{"version": 3, "chec')
    assert not recovery.restore(tmp_path, "p", "dev")  # without a backup there is nothing to take
    backup = json.dumps({"version": 3, "checkpoint": {"latest": None}})
    path.with_name("dev.json.bak").write_text(backup)
    torn = path.with_name("dev.json.attrs")
    torn.write_text("")
    assert recovery.restore(tmp_path, "p", "dev")
    assert path.read_text() == backup and not torn.exists()
    assert not recovery.restore(tmp_path, "p", "dev")
