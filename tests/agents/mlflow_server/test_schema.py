"""Upgrades of the real tables of the installed MLflow, from the revision before its newest."""

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from agents.mlflow_server import schema, schema_job, serve
from agents.mlflow_server.record import Revisions
from tests.agents.mlflow_server.conftest import Installed, installed


@dataclass
class Recorded(schema.RunningServers):
    """Records what happens to the servers, and the snapshots."""

    events: list[str] = field(default_factory=list)

    def stop(self) -> None:
        self.events.append("stop")

    def resume(self) -> None:
        self.events.append("resume")

    def snapshot(self, name: str) -> str:
        self.events.append("snapshot")
        return f"cluster-{name}"


def older(folder: Path) -> schema.Tables:
    """Tables as a former MLflow left them, with an experiment."""
    database = schema.Tables(f"sqlite:///{folder}/tracking.db")
    revisions = database.known()
    engine = sqlalchemy.create_engine(database.uri)
    initial: Any = importlib.import_module("mlflow.store.db.utils")
    users: Any = importlib.import_module("mlflow.server.auth.db.utils")
    command: Any = importlib.import_module("alembic.command")
    initial.InitialBase.metadata.create_all(engine)
    with engine.begin() as connection:
        config = initial._get_alembic_config(database.uri)
        config.attributes["connection"] = connection
        command.upgrade(config, revisions["tracking"][1])
    users.migrate(engine, revisions["users"][1])
    with engine.begin() as connection:
        names = "experiment_id, name, lifecycle_stage"
        connection.execute(sqlalchemy.text(f"INSERT INTO experiments ({names}) VALUES (7, 'kept', 'active')"))
    engine.dispose()
    return database


def revisions(database: schema.Tables) -> Revisions:
    with database.connection() as connection:
        return database.revisions(connection)


def newest(database: schema.Tables) -> Revisions:
    return {name: known[0] for name, known in database.known().items()}


def test_new_tables_are_made_without_a_snapshot_and_only_once(tmp_path: Path) -> None:
    database, servers = schema.Tables(f"sqlite:///{tmp_path}/tracking.db"), Recorded()
    schema.upgrade(database, servers, servers.snapshot)
    assert revisions(database) == newest(database)
    schema.upgrade(database, servers, servers.snapshot)
    assert servers.events == []
    schema.require(database.uri, users=True)


def test_old_servers_stop_and_a_snapshot_is_taken_before_an_upgrade(tmp_path: Path) -> None:
    database, servers = older(tmp_path), Recorded()
    with pytest.raises(schema.SchemaError, match=str(revisions(database)["tracking"])):
        schema.require(database.uri, users=True)
    said = schema.upgrade(database, servers, servers.snapshot)
    assert servers.events == ["stop", "snapshot"]
    assert f"cluster-before-{newest(database)['tracking']}" in said
    assert revisions(database) == newest(database)
    schema.require(database.uri, users=True)
    with database.connection() as connection:
        rows = connection.execute(sqlalchemy.text("SELECT name FROM experiments WHERE experiment_id = 7"))
        assert rows.scalar() == "kept"


def test_the_way_back_to_an_older_image_is_refused_and_names_the_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, servers = older(tmp_path), Recorded()
    before = revisions(database)
    said = schema.upgrade(database, servers, servers.snapshot)
    after = revisions(database)
    image_of_before(database, monkeypatch)
    assert newest(database) == before
    servers.events.clear()
    with pytest.raises(schema.SchemaError) as refused:
        schema.upgrade(database, servers, servers.snapshot)
    assert servers.events == [], "the new servers run on"
    snapshot = said.rpartition(" ")[2]
    assert snapshot.startswith("cluster-before-") and snapshot in str(refused.value)
    assert str(after["tracking"]) in str(refused.value)
    with pytest.raises(schema.SchemaError, match=snapshot):
        schema.require(database.uri, users=True)


def test_a_newer_database_without_a_record_is_refused_too(tmp_path: Path) -> None:
    database, servers = schema.Tables(f"sqlite:///{tmp_path}/tracking.db"), Recorded()
    schema.upgrade(database, servers)
    engine = sqlalchemy.create_engine(database.uri)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("UPDATE alembic_version SET version_num = 'fedcba987654'"))
    engine.dispose()
    with pytest.raises(schema.SchemaError, match="fedcba987654"):
        schema.upgrade(database, servers, servers.snapshot)
    assert servers.events == []


@pytest.mark.parametrize("fails", ["snapshot", "upgrade"])
def test_old_servers_start_again_after_an_upgrade_that_changed_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    database, servers = older(tmp_path), Recorded()
    before = revisions(database)

    def failed(*_: object) -> str:
        raise OSError("the cloud is unavailable")

    target: object = servers if fails == "snapshot" else schema.Tables
    monkeypatch.setattr(target, fails, failed)
    with pytest.raises(schema.SchemaError, match="the cloud is unavailable"):
        schema.upgrade(database, servers, servers.snapshot)
    assert [event for event in servers.events if event != "snapshot"] == ["stop", "resume"]
    assert revisions(database) == before


KILLED = """
import os, signal, sys
from agents.mlflow_server import schema
database = schema.Tables(sys.argv[1])
killed = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "after":
    Upgrade = schema.Tables.upgrade
    schema.Tables.upgrade = lambda self: (Upgrade(self), killed())
taken = killed if sys.argv[2] == "before" else lambda name: f"cluster-{name}"
schema.upgrade(database, schema.RunningServers(), taken)
"""


def kill(database: schema.Tables, when: str) -> None:
    """An upgrade that ends without a word `before` or `after` the tables changed."""
    command = [sys.executable, "-c", KILLED, database.uri, when]
    root = str(Path(schema.__file__).parents[2])
    killed = subprocess.run(command, env={**os.environ, "PYTHONPATH": root}, check=False)
    assert killed.returncode == -signal.SIGKILL


def image_of_before(database: schema.Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {name: revisions[1:] for name, revisions in database.known().items()}
    monkeypatch.setattr(schema.Tables, "known", lambda _: known)


def test_an_upgrade_that_is_killed_is_taken_up_or_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the next pod, or by the Job of the old image, whose servers would not start again otherwise."""
    database, servers = older(tmp_path), Recorded()
    before = revisions(database)
    kill(database, "before")
    assert revisions(database) == before
    with monkeypatch.context() as patched:
        image_of_before(database, patched)
        schema.upgrade(database, servers, servers.snapshot)
        assert servers.events == ["resume"] and revisions(database) == before
        schema.upgrade(database, servers, servers.snapshot)
        assert servers.events == ["resume"], "once"
    servers.events.clear()
    schema.upgrade(database, servers, servers.snapshot)
    assert servers.events == ["stop", "snapshot"] and revisions(database) == newest(database)


def test_an_upgrade_whose_job_was_killed_after_it_names_its_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, servers = older(tmp_path), Recorded()
    kill(database, "after")
    assert revisions(database) == newest(database)
    schema.upgrade(database, servers, servers.snapshot)
    assert servers.events == [], "`up` starts the new servers"
    image_of_before(database, monkeypatch)
    with pytest.raises(schema.SchemaError, match=f"cluster-before-{revisions(database)['tracking']}"):
        schema.upgrade(database, servers, servers.snapshot)


def test_the_login_is_renewed_for_the_connections_after_a_long_snapshot(tmp_path: Path) -> None:
    """A token of the database is valid for an hour, and the snapshot may take half of it."""
    events: list[str] = []

    def snapshot(_: str) -> str:
        events.append("snapshot")
        return ""

    database = schema.Tables(older(tmp_path).uri, renew=lambda: events.append("renew"))
    schema.upgrade(database, schema.RunningServers(), snapshot)
    assert events.index("snapshot") < len(events) - 1 and set(events) == {"renew", "snapshot"}
    after = events[events.index("snapshot") + 1 :]
    assert len(after) >= 4, "the record, both histories, the record"


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Installed]:
    with installed(tmp_path) as found:
        yield found


def test_a_server_does_not_start_on_other_tables(programs: Installed) -> None:
    database = older(programs.folder)
    assert programs.run(serve.__name__).wait(timeout=280) == serve.OTHER_SCHEMA
    assert str(revisions(database)["tracking"]) in programs.log.read_text()
    assert revisions(database) != newest(database), "a server upgrades nothing"


def test_jobs_at_the_same_time_take_turns(programs: Installed) -> None:
    arguments = programs.arguments(programs.folder / "first")
    first = programs.run(schema_job.__name__, *arguments)
    second = programs.run(schema_job.__name__, *programs.arguments(programs.folder / "second"))
    assert (first.wait(timeout=280), second.wait(timeout=280)) == (0, 0), programs.log.read_text()[-3000:]
    assert programs.log.read_text().count("created the tables") == 1


def test_an_image_without_a_package_changes_nothing(programs: Installed) -> None:
    database = older(programs.folder)
    before = revisions(database)
    (programs.folder / "mounted" / "flask_wtf.py").write_text("raise ImportError('not in this image')\n")
    code, message = programs.upgrade()
    assert code == 1 and "not in this image" in message
    assert revisions(database) == before
