"""Commands of a fleet fail apart, end with it, and are continued."""

import errno
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.trainstack.cli.command import run_json
from tests.trainstack.fleet.fake import PROGRAM, agency, at, calls, ended, start
from trainstack.fleet import child
from trainstack.fleet.runner import Places
from trainstack.fleet.stacks import FleetStack

PATIENCE_S = 60.0


def wait(for_it: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not for_it():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def descendants(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def test_each_failure_is_a_row_of_its_own(tmp_path: Path) -> None:
    base = agency(
        tmp_path,
        {
            "well": "",
            "wrong": "fail('error: getting secrets manager: incorrect passphrase')",
            "mute": "print('no document'); sys.exit(1)",
            "deaf": "fail('could not list bucket: dial tcp: i/o timeout')",
            "busy": "fail('ThrottlingException: Rate exceeded') if called('preview') < 3 else None",
            "drowned": "fail('googleapi: Error 429: Quota exceeded, rateLimitExceeded')",
        },
    )
    code, states, codes, _ = ended(start(base, "preview"))
    assert code == 1
    assert states == {
        "well": "done", "wrong": "unusable", "mute": "failed", "deaf": "unusable",
        "busy": "done", "drowned": "failed",
    }  # fmt: skip
    assert codes["wrong"][0] == "passphrase-wrong"
    assert codes["mute"] == ["command-without-result"]
    assert codes["deaf"][0] == "backend-unreachable"
    assert [len(calls(base, name, "preview")) for name in ("busy", "drowned", "wrong")] == [3, 4, 1]


def test_a_command_that_does_not_end_is_interrupted(tmp_path: Path) -> None:
    base = agency(tmp_path, {"slow": "hang()"}, minutes=0.05)
    code, states, codes, _ = ended(start(base, "preview"))
    assert (code, states) == (1, {"slow": "timed-out"})
    assert "command-timed-out" in codes["slow"]


def test_places_are_halved_by_throttling_and_grow_back() -> None:
    places = Places(8)
    for _ in range(4):
        places.take()
    places.give_back(throttled=True)
    places.give_back(throttled=True)
    assert places.open == 2
    for _ in range(4):
        places.give_back(throttled=False)
    assert places.open == 3
    for _ in range(100):
        places.give_back(throttled=True)
    assert places.open == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_every_command_and_the_next_run_continues(tmp_path: Path, number: int) -> None:
    once = "hang() if called('preview') < 2 else None"
    base = agency(tmp_path, {"first": "", "second": once, "third": once, "fourth": ""})
    # A shell lets its background processes ignore SIGINT.
    process = start(base, "preview", ignoring=[signal.SIGINT] if number == signal.SIGTERM else [])
    wait(lambda: at(base, "second", "running").exists() and at(base, "third", "running").exists())
    commands = descendants(process.pid)
    process.send_signal(number)
    code, states, _, _ = ended(process)
    assert code == 130
    assert states == {
        "first": "done",
        "second": "interrupted",
        "third": "interrupted",
        "fourth": "not-started",
    }
    assert at(base, "second", "interrupted").exists()
    assert not any(one.is_running() for one in commands)
    code, states, _, _ = ended(start(base, "preview"))
    assert (code, {*states.values()}) == (0, {"done"})
    assert [len(calls(base, name, "preview")) for name in ("first", "second", "fourth")] == [1, 2, 1]
    ended(start(base, "preview"))
    assert len(calls(base, "first", "preview")) == 2, "a finished run is not continued"


def test_commands_of_a_killed_fleet_end_and_a_finished_deployment_is_not_repeated(tmp_path: Path) -> None:
    once = "hang() if command == 'up' and called('up') < 2 else None"
    base = agency(tmp_path, {"first": "", "second": once, "third": ""}, canary="first")
    process = start(base, "up", "--yes", "--waves", "1,1")
    wait(at(base, "second", "running").exists)
    process.kill()
    process.communicate()
    wait(at(base, "second", "interrupted").exists)
    pid = int(at(base, "second", "running").read_text())
    wait(lambda: not psutil.pid_exists(pid))
    code, states, _, errors = ended(start(base, "up", "--yes", "--waves", "1,1"))
    assert (code, {*states.values()}) == (0, {"done"}), errors
    assert [len(calls(base, name, "up")) for name in ("first", "second", "third")] == [1, 2, 1]
    # What the killed deployment has changed is previewed again.
    assert [len(calls(base, name, "preview")) for name in ("first", "second", "third")] == [1, 2, 1]
    assert list(base.glob(".trainstack/fleet/*/work/*")) == []


def test_a_changed_file_is_not_covered_by_an_earlier_result(tmp_path: Path) -> None:
    base = agency(tmp_path, {"first": "", "second": "", "third": "hang() if called('preview') < 2 else None"})
    process = start(base, "preview", "--workers", "1")
    wait(at(base, "third", "running").exists)
    process.kill()
    process.communicate()
    with (base / "second" / "README.md").open("a") as file:
        file.write("changed\n")
    ended(start(base, "preview", "--workers", "1"))
    assert [len(calls(base, name, "preview")) for name in ("first", "second")] == [1, 2]


def test_only_what_was_shown_is_deployed(tmp_path: Path) -> None:
    base = agency(
        tmp_path,
        {
            "plain": "",
            "moved": "refuse('plan-changed') if command == 'up' else None",
            "steady": "answer(changes={'same': 9})",
            "denied": "answer(3, findings=[{'level': 'mandatory', 'policy': 'p', 'text': 't', 'urn': ''}])",
        },
    )
    code, states, codes, _ = ended(start(base, "up", "--yes", "--waves", "4", "--stop-after", "9"))
    assert code == 1
    assert states == {"plain": "done", "moved": "changed", "steady": "done", "denied": "violated"}
    assert codes["moved"] == ["plan-changed"]
    assert all("--yes --plan digest" in line for line in calls(base, "plain", "up"))
    assert [len(calls(base, name, "up")) for name in ("plain", "moved", "steady", "denied")] == [1, 1, 0, 0]


def test_canaries_come_first_and_a_failure_stops_the_rest(tmp_path: Path) -> None:
    broken = "fail('the deployment failed') if command == 'up' else None"
    base = agency(tmp_path, {"first": "", "second": "", "bird": broken}, canary="bird")
    code, states, codes, _ = ended(start(base, "up", "--yes"))
    assert code == 1
    assert states == {"first": "not-started", "second": "not-started", "bird": "failed"}
    assert codes["first"] == ["deployment-stopped"]
    assert calls(base, "first", "up") == []


def test_one_fleet_waits_for_a_deployment_that_another_has_begun(tmp_path: Path) -> None:
    base = agency(tmp_path, {"only": "hang() if command == 'up' and called('up') < 2 else None"})
    first = start(base, "up", "--yes")
    wait(at(base, "only", "running").exists)
    second = start(base, "up", "--yes", "--fresh")
    wait(lambda: len(calls(base, "only", "preview")) == 2)
    assert len(calls(base, "only", "up")) == 1
    os.kill(first.pid, signal.SIGINT)
    assert ended(first)[1] == {"only": "interrupted"}
    assert ended(second)[1] == {"only": "done"}


def test_files_that_cannot_be_read_fail_their_client_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = agency(tmp_path, {"acme": "", "globex": ""})
    read = FleetStack.digest

    def digest(stack: FleetStack) -> str:
        if stack.client.name == "globex":
            raise PermissionError(errno.EACCES, "Permission denied")
        return read(stack)

    monkeypatch.setattr(FleetStack, "digest", digest)
    monkeypatch.setattr(child, "PROGRAM", PROGRAM)
    code, found = run_json("fleet", "preview", "--file", str(base), "--rehearse")
    states = {
        one["client"]: (one["state"], [each["code"] for each in one["problems"]]) for one in found["stacks"]
    }
    assert (code, states) == (1, {"acme": ("done", []), "globex": ("failed", ["command-not-started"])})
