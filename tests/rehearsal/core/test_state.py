"""The state survives failures of the disk and the database, and holds values encrypted only."""

import os
import resource
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from rehearsal import control
from rehearsal.core.state import State
from tests.rehearsal.driver import refused

LARGE = "x" * 300_000


def insert(state: State, id: str, **inputs: Any) -> None:
    state.insert(
        package="aws", type="t", scope="s", id=id, urn=f"urn::{id}", name=id, inputs=inputs, outputs={}
    )


def ids(state: State) -> list[str]:
    return [record.id for record in state.find()]


def test_a_failed_commit_is_rolled_back_and_the_next_one_works(tmp_path: Path) -> None:
    state = State(tmp_path / "state.sqlite")
    insert(state, "before")
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))  # writing beyond it fails like a full disk
    try:
        refused("StateNotWritable", insert, state, "lost", value=LARGE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert ids(state) == ["before"]
    insert(state, "after")
    assert ids(state) == ["before", "after"]
    state.close()


def test_a_commit_that_leaves_its_transaction_open_is_rolled_back_too(tmp_path: Path) -> None:
    state = State(tmp_path / "state.sqlite")

    def no_commit(action: int, what: str | None, *_: str | None) -> int:
        ending = action == sqlite3.SQLITE_TRANSACTION and what == "COMMIT"
        return sqlite3.SQLITE_DENY if ending else sqlite3.SQLITE_OK

    state.database.connection.set_authorizer(no_commit)
    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        insert(state, "lost")
    state.database.connection.set_authorizer(None)
    insert(state, "after")
    assert ids(state) == ["after"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], check=False)
    if made.returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_full_disk_is_reported_and_work_continues_once_there_is_space(small_disk: Path) -> None:
    state = State(small_disk / "state.sqlite")
    insert(state, "before")
    ballast = small_disk / "ballast"
    free = os.statvfs(small_disk)
    ballast.write_bytes(bytes(free.f_bavail * free.f_bsize))
    for _ in range(3):
        refused(r"no space left.*state\.sqlite", insert, state, "lost", value=LARGE)
    assert ids(state) == ["before"]
    ballast.unlink()
    insert(state, "after", value=LARGE)
    state.close()
    assert ids(State(small_disk / "state.sqlite")) == ["before", "after"]


def test_no_value_lies_in_plain_text_on_the_disk(tmp_path: Path) -> None:
    state = State(tmp_path / "state.sqlite")
    state.begin_create("aws", "t", "urn::a", {"secretKey": "hunter2"})
    insert(state, "a", password="hunter2")
    state.put_document("secret", "arn", {"value": "hunter2"})
    for file in tmp_path.iterdir():
        assert b"hunter2" not in file.read_bytes(), file.name
        assert file.stat().st_mode & 0o077 == 0, file.name
    assert state.find()[0].inputs == {"password": "hunter2"}
    found = state.unconfirmed("urn::a")
    assert found is not None and found[1] == {"secretKey": "hunter2"}
    assert state.document("secret", "arn") == {"value": "hunter2"}


def test_another_passphrase_is_refused(tmp_path: Path) -> None:
    State(tmp_path / "state.sqlite").close()
    (tmp_path / "passphrase").write_text("another")
    with pytest.raises(UserError) as caught:
        State(tmp_path / "state.sqlite")
    assert caught.value.codes == (("state-passphrase-differs", str(tmp_path / "state.sqlite")),)


OLD = """
CREATE TABLE resource (
  key INTEGER PRIMARY KEY,
  package TEXT NOT NULL, type TEXT NOT NULL, scope TEXT NOT NULL, id TEXT NOT NULL,
  urn TEXT NOT NULL, name TEXT NOT NULL, inputs TEXT NOT NULL, outputs TEXT NOT NULL,
  UNIQUE (package, type, scope, id)
);
CREATE TABLE creation (
  urn TEXT PRIMARY KEY, package TEXT NOT NULL, type TEXT NOT NULL, config TEXT NOT NULL,
  resource INTEGER REFERENCES resource (key) ON DELETE CASCADE, id TEXT
) WITHOUT ROWID;
CREATE TABLE document (
  space TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (space, key)
) WITHOUT ROWID;
INSERT INTO resource VALUES (1, 'aws', 't', 's', 'a', 'urn::a', 'a', '{"password": "hunter2"}', '{"x": 1}');
INSERT INTO creation VALUES ('urn::a', 'aws', 't', '{"secretKey": "hunter2"}', 1, 'a');
INSERT INTO document VALUES ('secret', 'arn', '"hunter2"');
"""


def old_database(folder: Path) -> Path:
    path = folder / "state.sqlite"
    with sqlite3.connect(path) as old:
        old.execute("PRAGMA journal_mode = WAL")
        old.executescript(OLD)
    old.close()
    return path


def test_a_database_without_a_version_is_migrated(tmp_path: Path) -> None:
    path = old_database(tmp_path)
    state = State(path)
    assert state.find()[0].inputs == {"password": "hunter2"} and state.find()[0].outputs == {"x": 1}
    found = state.unconfirmed("urn::a")
    assert found is not None and found[1] == {"secretKey": "hunter2"}
    assert state.document("secret", "arn") == "hunter2"
    for file in tmp_path.iterdir():
        assert b"hunter2" not in file.read_bytes(), f"an old page is left in {file.name}"
    state.close()
    assert ids(State(path)) == ["a"]


def test_a_database_is_not_migrated_while_a_daemon_runs(tmp_path: Path) -> None:
    path = old_database(tmp_path)
    daemon = control.exclusive(tmp_path / "daemon.lock", time.monotonic())
    with daemon, pytest.raises(UserError) as caught:
        State(path)
    assert caught.value.codes == (("old-daemon-still-runs", str(path)),)
    assert b"hunter2" in path.read_bytes()


def test_a_database_can_be_read_while_a_daemon_creates_it(tmp_path: Path) -> None:
    for number in range(20):
        home = tmp_path / f"{number}"
        control.private(home)
        with control.exclusive(home / "daemon.lock", time.monotonic()), ThreadPoolExecutor(1) as threads:
            making = threads.submit(State, home / "state.sqlite", daemon=True)
            while True:
                last = making.done()
                reader = State(home / "state.sqlite")
                assert reader.find() == []
                reader.close()
                if last:
                    break
            making.result().close()


def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    State(path).close()
    with sqlite3.connect(path) as newer:
        newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(UserError) as caught:
        State(path)
    assert caught.value.codes == (("state-version-too-new", str(path)),)
