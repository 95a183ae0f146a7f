"""A rehearsal that is killed at any moment continues without loss or duplicates."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import psutil
import pytest
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from infra.engine import recovery
from rehearsal import control
from rehearsal.client import Rehearsal

pytestmark = pytest.mark.race

SURVIVOR = Path(__file__).with_name("survivor.py")
SUBNETS = 24
# The subnets, the VPC and its parts: a route table, network ACL, security group and DHCP options.
EXISTING = SUBNETS + 5

Run = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def start(rehearsal: Rehearsal, engine: Path) -> Run:
    environment = json.dumps(rehearsal.environment())

    def start(operation: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(SURVIVOR), operation, environment, str(engine)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


def finish(process: subprocess.Popen[str]) -> dict[str, int]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return dict(json.loads(out or "{}"))


def daemon(rehearsal: Rehearsal) -> psutil.Process:
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
        except psutil.Error:
            continue
        if "rehearsal.daemon" in command and str(rehearsal.home) in command:
            return process
    raise AssertionError("no daemon is running")


def wait_for(rehearsal: Rehearsal, count: int) -> None:
    deadline = time.monotonic() + 60
    while rehearsal.status()["resources"]["aws"] < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_daemon_killed_between_updates_is_restarted(rehearsal: Rehearsal, start: Run) -> None:
    finish(start("up"))
    connection, _ = control.lease(rehearsal.home, {"op": "status"})
    running = daemon(rehearsal)
    running.kill()
    running.wait(10)
    connection.close()
    assert finish(start("up")) == {"same": SUBNETS + 2}


def test_a_daemon_that_ends_before_it_responds_does_not_count(rehearsal: Rehearsal) -> None:
    control.private(rehearsal.home)

    def end() -> None:
        connection, _ = listener.accept()
        connection.recv(1024)
        control.socket_path(rehearsal.home).unlink()
        connection.close()

    with control.listen(rehearsal.home) as listener:
        ending = threading.Thread(target=end)
        ending.start()
        assert rehearsal.status()["resources"] == {"aws": 0, "gcp": 0, "kubernetes": 0}
        ending.join()


@pytest.mark.parametrize("after", [1, pytest.param(15, marks=pytest.mark.more)])
def test_a_daemon_killed_during_an_update_costs_one_more_up(
    rehearsal: Rehearsal, start: Run, after: int
) -> None:
    first = start("up")
    wait_for(rehearsal, after)
    daemon(rehearsal).kill()
    _, errors = first.communicate(timeout=120)
    assert first.returncode != 0
    assert "command again" in errors
    finish(start("up"))
    assert rehearsal.status()["resources"]["aws"] == EXISTING


def test_a_plugin_that_is_stopped_reports_the_end_of_the_daemon(rehearsal: Rehearsal) -> None:
    """The engine interrupts its plugins and shows their last output: `Close` in plugin.go."""
    environment = {**os.environ, **rehearsal.environment()}
    (launcher,) = rehearsal.home.glob("pulumi/plugins/resource-aws-v*/pulumi-resource-aws")
    for ended in (False, True):
        connection, _ = control.lease(rehearsal.home, {"op": "status"})
        plugin = subprocess.Popen(
            [launcher], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert plugin.stdout is not None
        assert int(plugin.stdout.readline()) > 0
        plugin.send_signal(signal.SIGSTOP)
        if ended:
            running = daemon(rehearsal)
            running.kill()
            running.wait(10)
        plugin.send_signal(signal.SIGINT)
        plugin.send_signal(signal.SIGCONT)
        _, errors = plugin.communicate(timeout=30)
        connection.close()
        assert ("command again" in errors) == ended


def test_a_killed_engine_leaves_no_server_and_no_orphan(rehearsal: Rehearsal, start: Run) -> None:
    first = start("up")
    wait_for(rehearsal, 9)
    for child in psutil.Process(first.pid).children(recursive=True):
        if child.name() == "pulumi":
            child.send_signal(signal.SIGKILL)
    first.communicate(timeout=120)
    assert first.returncode != 0
    rehearsal.wait_until_idle()  # the plugins have noticed that their engine is gone
    # Killed while it wrote its state, the engine leaves half a file and its own backup.
    recovery.restore(rehearsal.home / "state", "survivor", "dev")
    finish(start("cancel"))  # the engine's own lock
    finish(start("up"))
    assert rehearsal.status()["resources"]["aws"] == EXISTING
    finish(start("destroy"))
    assert rehearsal.status()["resources"]["aws"] == 0


class Engine:
    """A process that leases a provider like an engine, and creates VPCs."""

    TYPE = "aws:ec2/vpc:Vpc"

    def __init__(self, rehearsal: Rehearsal) -> None:
        self.process = subprocess.Popen(["sleep", "60"])
        lease = {"op": "serve", "package": "aws", "environment": {"AWS_REGION": "us-east-1"}}
        self.lease, answer = control.lease(rehearsal.home, {**lease, "engine": self.process.pid})
        self.channel = grpc.insecure_channel(f"127.0.0.1:{answer['port']}")
        self.provider = provider_pb2_grpc.ResourceProviderStub(self.channel)

    def urn(self, name: str) -> str:
        return f"urn:pulumi:dev::p::{self.TYPE}::{name}"

    def create(self, name: str) -> "grpc.Future[provider_pb2.CreateResponse]":
        properties = struct_pb2.Struct()
        properties["cidrBlock"] = "10.0.0.0/16"
        return self.provider.Create.future(
            provider_pb2.CreateRequest(urn=self.urn(name), type=self.TYPE, properties=properties)
        )

    def delete(self, name: str, id: str) -> "grpc.Future[empty_pb2.Empty]":
        return self.provider.Delete.future(
            provider_pb2.DeleteRequest(urn=self.urn(name), type=self.TYPE, id=id)
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)


@pytest.fixture
def lease(rehearsal: Rehearsal) -> Iterator[Callable[[], Engine]]:
    engines: list[Engine] = []

    def lease() -> Engine:
        engines.append(Engine(rehearsal))
        return engines[-1]

    yield lease
    for engine in engines:
        engine.kill()
        engine.channel.close()
        engine.lease.close()


def slowly(rehearsal: Rehearsal, operation: str, times: int) -> None:
    """Let operations hang for a while before anything is committed."""
    fault = {"on": Engine.TYPE, "operation": operation, "kind": "slow", "seconds": 1.0}
    rehearsal.set_faults({"faults": [{**fault, "nth": nth} for nth in range(1, times + 1)]})


def wait_for_faults(rehearsal: Rehearsal, count: int) -> None:
    deadline = time.monotonic() + 60
    while (rehearsal.home / "daemon.log").read_text().count("fault slow") < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_requests_of_a_killed_engine_end_before_recovery_does(
    rehearsal: Rehearsal, lease: Callable[[], Engine]
) -> None:
    """Its plugin may still run: a create that commits later would be an orphan forever."""
    killed, other = lease(), lease()
    slowly(rehearsal, "create", 2)
    lost, wanted = killed.create("lost"), other.create("wanted")
    wait_for_faults(rehearsal, 2)
    killed.kill()
    assert rehearsal.recover([killed.urn("lost")]) == []
    assert isinstance(lost.exception(30), grpc.RpcError)
    assert isinstance(killed.create("late").exception(30), grpc.RpcError)
    assert wanted.result(30).id  # the engine of another stack continues
    assert rehearsal.count("::lost") == rehearsal.count("::late") == 0
    assert rehearsal.count("::wanted") == 1


def test_a_deletion_of_a_killed_engine_does_not_follow_recovery(
    rehearsal: Rehearsal, lease: Callable[[], Engine]
) -> None:
    killed = lease()
    made = killed.create("kept").result(30).id
    slowly(rehearsal, "delete", 1)
    deletion = killed.delete("kept", made)
    wait_for_faults(rehearsal, 1)
    killed.kill()
    rehearsal.recover([])
    assert isinstance(deletion.exception(30), grpc.RpcError)
    assert rehearsal.count("::kept") == 1


def test_concurrent_leases_start_one_daemon(rehearsal: Rehearsal) -> None:
    connections: list[control.DaemonConnection] = []

    def ask() -> None:
        connections.append(control.lease(rehearsal.home, {"op": "status"})[0])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(connections) == 8
    found = [p for p in psutil.process_iter(["cmdline"]) if str(rehearsal.home) in (p.info["cmdline"] or [])]
    assert len(found) == 1
    for connection in connections:
        connection.close()
    assert "ERROR" not in (rehearsal.home / "daemon.log").read_text()


def test_a_long_home_has_its_socket_in_it_too(tmp_path: Path) -> None:
    home = tmp_path / ("deep" * 30) / "rehearsal"
    rehearsal = Rehearsal(home)
    connection, answer = control.lease(rehearsal.home, {"op": "status"})
    assert control.socket_path(home).is_socket()
    connection.close()
    assert answer["engines"] == 0
    rehearsal.stop()


def test_an_unknown_operation_or_package_is_refused(rehearsal: Rehearsal) -> None:
    for message, complaint in (
        ({"op": "dance"}, "dance"),
        ({"op": "serve", "package": "azure"}, "not emulated"),
    ):
        with pytest.raises(control.ControlError, match=complaint):
            control.lease(rehearsal.home, message)


def test_the_log_of_the_daemon_is_bounded(rehearsal: Rehearsal) -> None:
    rehearsal.environment()
    log = rehearsal.home / control.LOG
    for _ in range(5):
        with log.open("a") as file:
            file.write("x" * 1_100_000)
        control.lease(rehearsal.home, {"op": "status"})[0].close()
        rehearsal.stop()
    logs = sorted(file.name for file in rehearsal.home.glob(f"{control.LOG}*"))
    assert logs == [control.LOG, *(f"{control.LOG}.{number}" for number in (1, 2, 3))]
    assert log.stat().st_size < 10_000


def test_a_state_of_a_newer_version_is_refused_without_a_traceback(rehearsal: Rehearsal) -> None:
    rehearsal.environment()
    with sqlite3.connect(rehearsal.home / "state.sqlite") as newer:
        newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(control.ControlError, match=r"\[state-version-too-new\]") as refused:
        control.lease(rehearsal.home, {"op": "status"})
    assert "Traceback" not in str(refused.value)


def test_a_daemon_ends_when_its_home_is_removed(tmp_path: Path) -> None:
    home = control.private(tmp_path / "home")
    request = {"op": "serve", "package": "aws", "environment": {}, "engine": os.getpid()}
    connection, _ = control.lease(home, request)
    running = daemon(Rehearsal(home))
    shutil.rmtree(home)
    running.wait(timeout=10)
    connection.close()
