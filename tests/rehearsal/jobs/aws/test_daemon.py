"""The services of a real daemon: opening, lifetime, clean-up."""

import json
import os
import signal
import socket
import struct
import time
from typing import Any

import psutil
import pytest

from rehearsal import control
from rehearsal.client import Rehearsal
from rehearsal.core.state import State
from tests.rehearsal.jobs.aws.account import ACCOUNT, ENOUGH, REGION, ROLE, TRUST, client, request


def insert(rehearsal: Rehearsal) -> None:
    """A bucket and a role, as an engine's program would have made them."""
    state = State(rehearsal.home / "state.sqlite")
    name = ROLE.rpartition("/")[2]
    rows: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
        ("aws:s3/bucket:Bucket", "out-bucket", {}, {}),
        (
            "aws:iam/role:Role",
            name,
            {
                "assumeRolePolicy": json.dumps(TRUST),
                "inlinePolicies": [{"policy": json.dumps({"Statement": [ENOUGH]})}],
            },
            {"arn": ROLE, "name": name},
        ),
    ]
    for token, name, inputs, outputs in rows:
        state.insert(
            package="aws", type=token, scope=f"{ACCOUNT}/{REGION}", id=name, urn=name, name=name,
            inputs=inputs, outputs=outputs,
        )  # fmt: skip
    state.close()


def test_the_port_is_known_before_and_kept(rehearsal: Rehearsal) -> None:
    before = rehearsal.environment()
    for service in ("SAGEMAKER", "S3", "CLOUDWATCH_LOGS", "STS", "LAMBDA"):
        assert before[f"AWS_ENDPOINT_URL_{service}"].startswith("http://127.0.0.1:1")
    assert control.connect(rehearsal.home) is None
    assert rehearsal.environment() == before


def test_a_daemon_that_found_itself_idle_leases_nothing_more(rehearsal: Rehearsal) -> None:
    """An engine that began in that moment would lose its provider; so it gets another daemon."""
    with rehearsal.serving():
        accepted, _ = control.lease(rehearsal.home, {"op": "status"})
    while control.socket_path(rehearsal.home).exists():
        time.sleep(0.001)
    with pytest.raises(control.GoneError):
        accepted.ask({"op": "serving", "engine": os.getpid()})
    accepted.close()


def test_a_port_that_another_program_has_is_named(rehearsal: Rehearsal) -> None:
    url = rehearsal.environment()["AWS_ENDPOINT_URL_S3"]
    with (
        socket.create_server(("127.0.0.1", int(url.rpartition(":")[2]))),
        pytest.raises(control.ControlError, match=url),
        rehearsal.serving(),
    ):
        pass


def test_the_services_are_open_while_a_client_holds_a_lease(
    rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rehearsal.serving() as environment:
        insert(rehearsal)
        sts = client(environment, "sts", monkeypatch)
        assert sts.get_caller_identity()["Arn"].endswith(":assumed-role/rehearsal/session")
        assert rehearsal.status()["engines"] == 1
    rehearsal.wait_until_idle()


def test_a_job_keeps_the_daemon_and_ends_with_it(
    rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rehearsal.serving() as environment:
        insert(rehearsal)
        sagemaker = client(environment, "sagemaker", monkeypatch)
        sagemaker.create_training_job(**request("job-1", "sleep 60"))
    deadline = time.monotonic() + 30
    while [row["phase"] for row in rehearsal.status()["workloads"]] != ["Training"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(2.5)  # longer than an idle daemon stays
    (row,) = rehearsal.status()["workloads"]
    assert (row["kind"], row["name"], row["phase"]) == ("TrainingJob", "job-1", "Training")
    daemon = _daemon(rehearsal)
    os.kill(daemon, signal.SIGKILL)
    psutil.Process(daemon).wait(5) if psutil.pid_exists(daemon) else None
    with rehearsal.serving():
        found = sagemaker.describe_training_job(TrainingJobName="job-1")
        assert found["TrainingJobStatus"] == "Failed"
        assert found["FailureReason"].startswith("InternalServerError")
        deadline = time.monotonic() + 5
        while any(psutil.pid_exists(pid) for pid in row["pids"]):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_stopping_the_rehearsal_ends_its_jobs(rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> None:
    with rehearsal.serving() as environment:
        insert(rehearsal)
        sagemaker = client(environment, "sagemaker", monkeypatch)
        sagemaker.create_training_job(**request("job-1", "sleep 60"))
        while sagemaker.describe_training_job(TrainingJobName="job-1")["SecondaryStatus"] != "Training":
            time.sleep(0.05)
        (row,) = rehearsal.status()["workloads"]
    rehearsal.stop()
    assert not any(psutil.pid_exists(pid) for pid in row["pids"])


def _daemon(rehearsal: Rehearsal) -> int:
    """The process that listens on the control socket."""
    connection = control.connect(rehearsal.home)
    assert connection is not None
    credentials = connection.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    connection.close()
    return int(struct.unpack("3i", credentials)[0])
