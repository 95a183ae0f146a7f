"""Runs that fail while they start: the first rank that broke is named, and the log exists."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[3]
DIES = """\
import os, signal, sys, time
sys.modules.update(dict.fromkeys(filter(None, os.environ.get("MISSING", "").split(","))))
dies = dict(item.split(":") for item in os.environ.get("DIES", "").split(",") if item)
def die(event, _):
    how = dies.get(os.environ.get("RANK")) if event == "ctypes.dlopen" else None
    if how:  # in `die_with_parent`, before the first heartbeat
        time.sleep(0.5)  # the other ranks have sent heartbeats
        os.kill(os.getpid(), -int(how)) if int(how) < 0 else os._exit(int(how))
sys.addaudithook(die)
if "SPARES" in os.environ:
    from multiprocessing.context import ForkProcess
    start = ForkProcess.start
    def killed(self):
        start(self)
        os.kill(self.pid, signal.SIGKILL)
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
    ForkProcess.start = killed
"""


def run(home: Path, *arguments: str, python: tuple[str, ...] = (), **environment: str) -> tuple[int, str]:
    """(exit code, output) of `smoke run --only parity`; Python code before it in every process: `DIES`."""
    (home / "sitecustomize.py").write_text(DIES)
    done = subprocess.run(
        [*python, sys.executable, "-m", "smoke_training", "run", "--only", "parity", *arguments],
        env={**os.environ, "PYTHONPATH": f"{home}:{HERE}", "TMPDIR": str(home), **environment},
        cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.parametrize(("how", "named", "others"), [("-9", "1", {"0", "2"}), ("127", "1", {"0", "2"})])
def test_a_rank_that_dies_before_its_first_heartbeat_is_named_and_no_other(
    tmp_path: Path, how: str, named: str, others: set[str]
) -> None:
    code, output = run(tmp_path, "--ranks", "3", "--out", "result.json", DIES=f"{named}:{how}")
    first = next(
        c for c in json.loads((tmp_path / "result.json").read_text())["checks"] if c["status"] != "PASS"
    )
    if how == "-9":
        first = next(c for c in json.loads((tmp_path / "result.json").read_text())["checks"] if c["culprits"])
        assert [(c["kind"], c["id"], c["cause"]) for c in first["culprits"]] == [("rank", named, "killed")]
        assert code == 1, output
    else:
        assert (first["id"], code) == ("run.completed", 3), output
    assert f"rank {named}" in first["message"]
    assert not any(f"rank {other}" in first["message"] for other in others)
    (log,) = tmp_path.glob("smoke-*/node-0/torchrun.log")
    assert str(log.parent) in output


def test_a_process_that_is_killed_before_it_becomes_a_rank_is_replaced(tmp_path: Path) -> None:
    code, output = run(tmp_path, "--ranks", "2", "--out", "result.json", SPARES="killed")
    assert code == 0, output


def test_a_module_that_is_missing_is_the_reason_and_accuses_no_rank(tmp_path: Path) -> None:
    code, output = run(
        tmp_path, "--ranks", "2", "--out", "result.json", MISSING="smoke_training.probes.group"
    )
    checks = json.loads((tmp_path / "result.json").read_text())["checks"]
    first = next(check for check in checks if check["id"] == "run.completed")
    assert code == 3, output
    assert "rank 0 broke in phase start: ModuleNotFoundError: import of smoke_training" in first["message"]
    assert not any(check["culprits"] for check in checks)


def test_a_result_goes_into_a_pipe_and_nothing_is_written_beside_it(tmp_path: Path) -> None:
    pipe, found = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()), daemon=True)
    reader.start()
    code, output = run(
        tmp_path, "--ranks", "1", "--out", "pipe", DIES="0:127", python=("sh", "-c", 'exec "$@" >&-', "-")
    )
    reader.join(10)
    assert (code, json.loads(found[0])["verdict"]) == (3, "ERROR"), output
    assert pipe.is_fifo()
    assert not list(tmp_path.glob("pipe.*"))


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2")
def test_launchers_meet_where_only_ipv6_exists() -> None:
    program = """
import socket, time
from smoke_training.runtime import host
from smoke_training.runtime.control import channel
address = host.resolve("fd00::1")
assert host.resolve("127.0.0.1.invalid") is None
assert host.interface_to(address) == "eth0" and host.interface_to("127.0.0.1") is None
listener = channel.ChannelListener(channel.listen(address, 29501), "word")
caller = channel.ChannelCaller(address, 29501)
caller.greet(channel.hello("word", 1, {}))
found, until = [], time.monotonic() + 5
while not found and time.monotonic() < until:
    caller.poll(time.monotonic())
    found = listener.poll(time.monotonic())
assert [(event.kind, event.node) for event in found] == [("hello", 1)], found
"""
    network = (
        "ip link set lo up && ip addr del 127.0.0.1/8 dev lo; ip link add eth0 type veth peer name other && "
        "ip link set other up && ip link set eth0 up && "
        'ip addr add fd00::1/64 dev eth0 nodad && exec "$@"'
    )
    command = ["unshare", "--net", "sh", "-c", network, "-", sys.executable, "-c", program]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
