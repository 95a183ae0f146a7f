"""What a killed engine leaves in a file backend."""

import datetime
import json
import os
import socket
from pathlib import Path

from infra.engine import recovery

NOW = datetime.datetime.now(datetime.UTC)


def lock(backend: Path, name: str, pid: int, host: str = "", when: datetime.datetime = NOW) -> Path:
    path = backend / ".pulumi" / "locks" / "organization" / "p" / "dev" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"pid": pid, "username": "u", "hostname": host or socket.gethostname()}
    path.write_text(json.dumps({**content, "timestamp": when.isoformat()}))
    return path


def test_only_locks_of_the_dead_are_removed(tmp_path: Path) -> None:
    dead = lock(tmp_path, "dead", 2**22 + 1)
    alive = lock(tmp_path, "alive", os.getpid())
    elsewhere = lock(tmp_path, "elsewhere", 2**22 + 1, "another-host")
    reused = lock(tmp_path, "reused", os.getpid(), when=NOW - datetime.timedelta(days=1))
    torn = lock(tmp_path, "torn", 1)
    torn.write_text("")
    os.utime(torn, (0, 0))
    removed = recovery.remove_stale_locks(tmp_path, "p", "dev")
    assert {one.path for one in removed} == {dead, reused, torn}
    assert {one.path for one in recovery.locks(tmp_path, "p", "dev")} == {alive, elsewhere}


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
