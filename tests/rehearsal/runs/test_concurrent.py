"""Concurrent runs: two of one stack exclude each other, two of different stacks do not."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from infra.engine.install import require
from infra.errors import UserError
from rehearsal.client import Rehearsal
from rehearsal.recovery import alone
from tests.rehearsal.runs import life
from tests.rehearsal.runs.test_survival import Engine

pytestmark = pytest.mark.race

_PROGRAM = Path(__file__).with_name("killed_program.py")
# The first run must still be working when the second one starts.
_SLOW = {"on": "aws:ec2/vpc:Vpc", "operation": "create", "kind": "slow", "seconds": 8, "probability": 1.0}


class Project:
    """A project in a rehearsal, used by the native command line."""

    def __init__(self, folder: Path, rehearsal: Rehearsal) -> None:
        self.folder, cli = folder, require()
        (folder / "Pulumi.yaml").write_text("name: together\nruntime: python\n")
        (folder / "__main__.py").write_text(_PROGRAM.read_text())
        self.environment = {
            **os.environ,
            **rehearsal.environment(),
            "PATH": f"{cli.folder}{os.pathsep}{os.environ['PATH']}",
            "AWS_REGION": "us-east-1",
        }

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [require().path, *arguments, "--non-interactive"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str) -> str:
        """The output of a command, which must succeed."""
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0, output
        return output


@pytest.fixture
def project(tmp_path: Path, rehearsal: Rehearsal) -> Project:
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder, rehearsal)


def test_of_two_ups_of_one_stack_one_works_and_the_other_fails_cleanly(
    project: Project, rehearsal: Rehearsal
) -> None:
    project.run("stack", "init", "one")
    rehearsal.set_faults({"faults": [_SLOW]})
    first = project.start("up", "--yes", "--skip-preview", "--stack", "one")
    locks = rehearsal.home / "state/.pulumi/locks"
    deadline = time.monotonic() + 30
    while not list(locks.rglob("*.json")):
        assert time.monotonic() < deadline and first.poll() is None
        time.sleep(0.05)

    second = project.start("up", "--yes", "--skip-preview", "--stack", "one")
    printed, _ = second.communicate(timeout=60)
    assert second.returncode != 0 and "locked" in printed
    with pytest.raises(UserError) as caught, alone(rehearsal, "together", "one"):
        pass
    assert caught.value.codes == (("stack-is-busy", "--stack"),)

    assert first.wait(120) == 0
    assert "31 unchanged" in project.run("up", "--yes", "--skip-preview", "--stack", "one")
    project.run("destroy", "--yes", "--skip-preview", "--stack", "one")
    assert sum(rehearsal.status()["resources"].values()) == 0


def test_two_stacks_go_up_and_down_at_once(project: Project, rehearsal: Rehearsal) -> None:
    stacks = ("one", "two")
    for stack in stacks:
        project.run("stack", "init", stack)
    for operation in ("up", "destroy"):
        runs = [project.start(operation, "--yes", "--skip-preview", "--stack", stack) for stack in stacks]
        for process in runs:
            output, _ = process.communicate(timeout=120)
            assert process.returncode == 0, output
        if operation == "up":
            counts = [rehearsal.count(f"urn:pulumi:{stack}::") for stack in stacks]
            assert counts[0] == counts[1] > 20
    assert sum(rehearsal.status()["resources"].values()) == 0


def test_a_destroy_does_not_wait_for_what_other_stacks_have_in_the_home(rehearsal: Rehearsal) -> None:
    rehearsal.environment()
    other = Engine(rehearsal)
    try:
        other.create("kept").result(30)
        done = life.do(rehearsal.home, "destroy", "--yes")
        assert done.returncode == 0, done.stderr
        assert rehearsal.count("::kept") == 1
    finally:
        other.kill()
        other.channel.close()
        other.lease.close()


def test_no_engine_starts_during_recovery(
    project: Project, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.run("stack", "init", "one")
    project.run("up", "--yes", "--skip-preview", "--stack", "one")
    state = rehearsal.home / "state/.pulumi/stacks/together/one.json"
    content = json.loads(state.read_text())
    vpc = next(
        one for one in content["checkpoint"]["latest"]["resources"] if one["type"] == "aws:ec2/vpc:Vpc"
    )
    content["checkpoint"]["latest"]["pending_operations"] = [{"resource": vpc, "type": "updating"}]
    state.write_text(json.dumps(content))
    output: list[str] = []

    def meanwhile(urns: list[str]) -> list[str]:
        engine = project.start("up", "--yes", "--skip-preview", "--stack", "one")
        output.append(engine.communicate(timeout=120)[0])
        return []

    monkeypatch.setattr(rehearsal, "recover", meanwhile)
    with alone(rehearsal, "together", "one"):
        assert "locked" in output[0]
        assert "31 unchanged" in project.run("up", "--yes", "--skip-preview", "--stack", "one")
    project.run("destroy", "--yes", "--skip-preview", "--stack", "one")
