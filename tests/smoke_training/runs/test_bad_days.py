"""Runs that go wrong, each ended in the right state, in time, with a name and with nothing left running."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from smoke_training.names import CONTROL_PORT_OFFSET
from smoke_training.verdict_record import readable
from tests.smoke_training.jobs import ADDRESS, Job, check, until
from tests.smoke_training.samples import document

# Long enough to be hit in the middle, short to wait for.
TRAINING = {"phases": ["training"], "hang_timeout_s": 3.0}
SHORT = {"phases": ["parity"]}
STOPPED_AT_ITS_START = """\
import os, signal, sys
def stop(event, _):
    if event == "ctypes.dlopen" and "RANK" in os.environ:  # in `die_with_parent`
        os.kill(os.getpid(), signal.SIGSTOP)
sys.addaudithook(stop)
"""


def failed(job: Job, name: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    """(check, first culprit, termination message of node 0) of a job that failed in one check."""
    code, _, output = job.nodes[0].finish(60)
    result = job.result()
    assert (code, result["verdict"]) == (1, "FAIL"), output
    assert [c["id"] for c in result["checks"] if c["status"] == "FAIL"] == [name], output
    found = check(result, name)
    message = job.nodes[0].message()
    assert message.startswith(f"FAIL {name.rpartition('.')[2]} "), message
    assert found["next_action"] in message
    return found, found["culprits"][0], message


def test_a_killed_rank_is_named_with_its_signal_at_once(
    archive: Path, tmp_path: Path, jobs: list[Job]
) -> None:
    job = Job(archive, tmp_path, plan={"phases": ["training", "resume"]})
    jobs.append(job)
    until(lambda: job.ranks(1, "training"))
    (pid,) = job.ranks(1)
    killed = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    found, culprit, _ = failed(job, "run.liveness")
    assert time.monotonic() - killed < 10  # without a wait for any timeout
    assert (culprit["kind"], culprit["id"], culprit["cause"]) == ("rank", "1", "killed")
    assert culprit["node"] == "smoke-ab-1"
    assert all(fact in found["message"] for fact in ("rank 1", "node 1", "SIGKILL", "phase training"))
    assert len(found["culprits"]) == 1  # not the rank that only lost its peer
    code, _, other = job.nodes[1].finish(20)
    assert code == 1
    assert "SIGKILL" in job.nodes[1].message(), other
    assert job.processes() == []


def test_a_stopped_rank_is_named_with_its_phase(archive: Path, tmp_path: Path, jobs: list[Job]) -> None:
    job = Job(archive, tmp_path, plan=TRAINING)
    jobs.append(job)
    until(lambda: job.ranks(1, "training"))
    (pid,) = job.ranks(1)
    assert Path(f"/proc/{pid}/comm").read_text() == "rank 1\n"  # for `ps`, `py-spy` and faults of a rehearsal
    os.kill(pid, signal.SIGSTOP)
    found, culprit, _ = failed(job, "run.liveness")
    assert (culprit["kind"], culprit["id"], culprit["cause"]) == ("rank", "1", "hung")
    assert all(fact in found["message"] for fact in ("rank 1", "node 1", "stopped", "phase training"))
    assert found["measured"]["value"] >= 3.0
    assert job.nodes[1].finish(20)[0] == 1
    assert job.processes() == []


def test_a_rank_that_never_joins_is_named(archive: Path, tmp_path: Path, jobs: list[Job]) -> None:
    plan = {**SHORT, "hang_timeout_s": 3.0, "join_timeout_s": 20.0}
    (tmp_path / "sitecustomize.py").write_text(STOPPED_AT_ITS_START)
    job = Job(archive, tmp_path, plan=plan, environments={1: {"PYTHONPATH": str(tmp_path)}})
    jobs.append(job)
    found, culprit, _ = failed(job, "run.liveness")
    assert (culprit["kind"], culprit["id"], culprit["cause"]) == ("rank", "1", "never_joined")
    assert "never started" in found["message"]
    job.nodes[1].finish(20)
    assert job.processes() == []


@pytest.mark.parametrize(("number", "cause"), [(signal.SIGKILL, "killed"), (signal.SIGSTOP, "hung")])
def test_a_launcher_that_is_gone_or_silent_makes_its_node_the_culprit(
    archive: Path, tmp_path: Path, jobs: list[Job], number: signal.Signals, cause: str
) -> None:
    job = Job(archive, tmp_path, plan=TRAINING)
    jobs.append(job)
    until(lambda: job.measured("world"))
    job.nodes[1].process.send_signal(number)
    found, culprit, _ = failed(job, "run.liveness")
    assert (culprit["kind"], culprit["id"], culprit["cause"]) == ("node", "1", cause)
    assert culprit["node"] == "smoke-ab-1"
    assert "of node 1" in found["message"]
    # A stopped launcher obeys when it goes on, and leaves nothing behind either.
    job.nodes[1].process.send_signal(signal.SIGCONT)
    job.nodes[1].process.wait(30)
    until(lambda: not job.processes(), 10)


def test_without_node_0_the_others_end_by_themselves(archive: Path, tmp_path: Path, jobs: list[Job]) -> None:
    job = Job(archive, tmp_path, plan=TRAINING)
    jobs.append(job)
    until(lambda: job.measured("world"))
    job.nodes[0].process.kill()
    code, _, _ = job.nodes[1].finish(20)
    assert code == 3
    assert "node 0 vanished" in job.nodes[1].message()
    assert not (tmp_path / "result.json").exists()
    until(lambda: not job.processes(), 10)


def test_a_user_signal_of_a_queue_ends_a_run_with_a_result(
    archive: Path, tmp_path: Path, jobs: list[Job]
) -> None:
    job = Job(archive, tmp_path, plan=TRAINING)
    jobs.append(job)
    until(lambda: job.measured("world"))
    job.nodes[0].process.send_signal(signal.SIGUSR1)  # `sbatch --signal`
    assert job.nodes[0].finish(30)[0] == 3
    assert check(job.result(), "run.completed")["status"] == "ERROR"
    assert "SIGUSR1" in job.nodes[0].message()
    job.nodes[1].finish(20)
    assert job.processes() == []


def test_a_missing_node_is_named_and_no_rank_is_started(
    archive: Path, tmp_path: Path, jobs: list[Job]
) -> None:
    left = tmp_path / "node-0" / "evidence.jsonl"
    left.parent.mkdir()
    left.write_text('{"kind": "finished"}\n')  # of an earlier run in the same folder
    job = Job(archive, tmp_path, start=(0,), plan={**SHORT, "join_timeout_s": 2.0})
    jobs.append(job)
    found, culprit, _ = failed(job, "preflight.nodes")
    assert time.monotonic() - job.began < 12
    assert (culprit["kind"], culprit["id"], culprit["cause"]) == ("node", "1", "never_joined")
    assert found["measured"]["detail"]["missing"] == [1]
    assert not (tmp_path / "node-0" / "plan.json").exists()
    assert '"finished"' not in (tmp_path / "result.samples.jsonl").read_text()


def test_another_world_size_is_named_before_any_rank_starts(
    archive: Path, tmp_path: Path, jobs: list[Job]
) -> None:
    job = Job(archive, tmp_path, plan=SHORT, plans={1: {"ranks_per_node": 2}})
    jobs.append(job)
    found, culprit, _ = failed(job, "preflight.nodes")
    assert (culprit["kind"], culprit["id"], culprit["cause"]) == ("node", "1", "wrong_world_size")
    assert all(fact in found["message"] for fact in ("node 1 has", "of 2 ranks", "of 1 ranks"))
    assert job.nodes[1].finish(20)[0] == 1
    assert "of 2 ranks" in job.nodes[1].message()
    assert not (tmp_path / "node-1").exists()


def test_a_variable_that_differs_is_named_without_its_value(
    archive: Path, tmp_path: Path, jobs: list[Job]
) -> None:
    job = Job(archive, tmp_path, plan=SHORT, environments={1: {"NCCL_ALGO": "a-secret-value"}})
    jobs.append(job)
    found, culprit, message = failed(job, "preflight.nodes")
    assert (culprit["id"], culprit["cause"]) == ("1", "mismatch")
    assert "variable NCCL_ALGO" in found["message"]
    assert "a-secret-value" not in message + (tmp_path / "result.samples.jsonl").read_text()
    job.nodes[1].finish(20)


def test_garbage_on_the_control_port_disturbs_nothing(archive: Path, tmp_path: Path, jobs: list[Job]) -> None:
    job = Job(archive, tmp_path, start=(0,), plan=SHORT)
    jobs.append(job)
    port = job.port + CONTROL_PORT_OFFSET
    strangers = []

    def connected() -> bool:
        with contextlib.suppress(OSError):
            strangers.append(socket.create_connection((ADDRESS, port), timeout=1))
        return bool(strangers)

    until(connected)
    for garbage in (
        os.urandom(4096) + b"\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b'{"type": "hello", "protocol": "trainstack.smoke-control/1", "word": 7, "node": [], "facts": 1}\n',
        b"[" * 100_000 + b"\n",
        b'{"type": "go"}\n{"type": "stop"}\n',
    ):
        with contextlib.suppress(OSError), socket.create_connection((ADDRESS, port), timeout=1) as stranger:
            stranger.sendall(garbage)
    flood = socket.create_connection((ADDRESS, port), timeout=1)
    with contextlib.suppress(OSError):
        for _ in range(40):
            flood.sendall(b"x" * 65536)
    job.start(archive, 1)
    code, _, output = job.nodes[0].finish(60)
    assert code == 0, output
    assert check(job.result(), "preflight.nodes")["measured"]["detail"]["strangers"] >= 5
    assert job.nodes[1].finish(20)[0] == 0
    for sock in (*strangers, flood):
        sock.close()


def alone(archive: Path, home: Path, **environment: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Node 0 of a one-node job; (how it ended, termination message)."""
    job = {"nodes": 1, "gpus_per_node": 8, "timeout_s": 30, "join_timeout_s": 2.0, **SHORT}
    (home / "plan.json").write_text(json.dumps(document(**job)))
    message = home / "message"
    own = {
        "NODE_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "SMOKE_DEVICE": "auto",
        "TERMINATION_MESSAGE_PATH": str(message), **environment,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(archive), "node", "--plan", str(home / "plan.json")],
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done, readable(message.read_text())


def test_a_work_folder_that_cannot_be_written_is_named(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done, message = alone(archive, tmp_path, WORK_DIR=str(tmp_path / "file" / "work"), SMOKE_DEVICE="cpu")
    assert done.returncode == 3, done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert "Not a directory" in message
    assert '"event": "result"' in done.stdout  # the log is the only place left


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_disk_that_is_full_at_the_end_is_an_error_that_says_so(archive: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], check=True)
    try:
        with contextlib.suppress(OSError):
            (disk / "filler").write_bytes(b"x" * 64 * 1024)
        done, message = alone(archive, tmp_path, WORK_DIR=str(disk))
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    assert "Traceback" not in done.stdout + done.stderr
    assert "No space left" in message
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    (result,) = [event for event in events if event["event"] == "result"]
    culprits = [c for item in result["checks"] for c in item["culprits"] if c["cause"] == "disk_full"]
    assert culprits, done.stdout


def test_a_meeting_point_without_address_ends_in_time(archive: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    home = tmp_path / "home"
    home.mkdir()
    done, message = alone(
        archive, home, WORK_DIR=str(tmp_path), SMOKE_DEVICE="cpu", MASTER_ADDR="no.such.invalid"
    )
    assert done.returncode == 3
    assert message.startswith("ERROR completed MASTER_ADDR no.such.invalid")
    assert time.monotonic() - began < 20
    first = json.loads(done.stdout.splitlines()[0])
    assert first["event"] == "preflight"


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_wall_clock_that_jumps_changes_nothing(archive: Path, tmp_path: Path, jobs: list[Job]) -> None:
    library, proof = tmp_path / "jump.so", tmp_path / "jumped"
    source = Path(__file__).with_name("clock_jump.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source)], check=True)
    job = Job(
        archive,
        tmp_path,
        plan={"phases": ["parity", "resume"], "hang_timeout_s": 20.0},
        environments={0: {"TSLAB_CLOCK_BY": "-86400"}, 1: {"TSLAB_CLOCK_BY": "86400"}},
        LD_PRELOAD=str(library),
        TSLAB_CLOCK_AT=str(time.monotonic() + 4),
        TSLAB_CLOCK_PROOF=str(proof),
    )
    jobs.append(job)
    code, _, output = job.nodes[0].finish(100)
    assert code == 0, output
    assert job.nodes[1].finish(20)[0] == 0
    assert len(proof.read_text().splitlines()) >= 4  # launchers and ranks of both nodes
    result = job.result()
    assert 0 < result["duration_s"] < time.monotonic() - job.began
    assert 0 < check(result, "resume.recovery")["measured"]["value"] < 60
