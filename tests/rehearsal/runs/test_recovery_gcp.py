"""On Google Cloud, an `up` that found no machines, or lost its engine, is finished by the next one."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rehearsal.client import Rehearsal
from rehearsal.core.faults import parse
from rehearsal.core.state import State
from rehearsal.recovery import recover
from tests.rehearsal.runs import life
from tests.rehearsal.runs.life import ROOT

PROJECT, STACK, POOL = "trainstack", "dev", "dev-a100-nodes"
SOLD_OUT = {
    "capacity": [
        {"instance_type": "a2-highgpu-8g", "zone": "us-central1-c", "market": "spot", "instances": 0}
    ]
}
# `more`: what recovers is the engine's and the daemon's, as on AWS.
pytestmark = [pytest.mark.timeout(900), pytest.mark.more, pytest.mark.race]


@dataclass(frozen=True)
class Seen:
    """One command: its output, and the state after it."""

    succeeded: bool
    output: str
    recovered: str
    """Steps of the recovery before it."""
    changes: Mapping[str, int]
    clouds: Sequence[tuple[str, str]]
    """(URN, id) of all resources of programs in the clouds."""
    engine: Mapping[str, Mapping[str, Any]]
    """The resources of the engine's state by URN."""

    @property
    def pool(self) -> Mapping[str, Any]:
        """The pool of GPUs in the engine's state."""
        (found,) = (one for urn, one in self.engine.items() if urn.endswith(f"::{POOL}"))
        return found

    @property
    def known(self) -> Sequence[tuple[str, str]]:
        """(URN, id) of the resources in the engine's state."""
        kept = self.engine.items()
        return sorted(
            (urn, one["id"])
            for urn, one in kept
            if one.get("custom") and not one["type"].startswith("pulumi:")
        )


@dataclass(frozen=True)
class Life:
    """An `up` without machines, one whose engine was killed, the one after it, and the end."""

    sold_out: Seen
    killed: Seen
    finished: Seen
    destroyed: Seen


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    for home in life.home(tmp_path_factory.mktemp("google")):
        yield Life(
            sold_out=_run(home, "up", SOLD_OUT),
            killed=_run(home, "up", _fault("kubernetes:*:crash-after=engine@30")),
            finished=_run(home, "up"),
            destroyed=_run(home, "destroy"),
        )


def _fault(text: str) -> Mapping[str, Any]:
    """The parsed `--fault`."""
    return parse([text]).model_dump(mode="json", exclude_none=True)


def _run(home: Path, operation: str, faults: Mapping[str, Any] | None = None) -> Seen:
    rehearsal = Rehearsal(home)
    rehearsal.environment()
    recovered = recover(rehearsal, PROJECT, STACK)
    rehearsal.set_faults(faults or {})
    command = [sys.executable, "-m", "tests.rehearsal.runs.small_google", operation, str(home)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=400)
    state = State(home / "state.sqlite")
    try:
        clouds = sorted((one.urn, one.id) for one in state.find() if one.urn)
    finally:
        state.close()
    succeeded = done.returncode == 0
    return Seen(
        succeeded=succeeded,
        output=done.stdout + done.stderr,
        recovered="\n".join(recovered),
        changes=json.loads(done.stdout) if succeeded else {},
        clouds=clouds,
        engine=_engine(home),
    )


def _engine(home: Path) -> Mapping[str, Mapping[str, Any]]:
    path = home / "state" / ".pulumi" / "stacks" / PROJECT / f"{STACK}.json"
    latest = json.loads(path.read_text())["checkpoint"].get("latest") or {}
    return {one["urn"]: one for one in latest.get("resources", [])}


def test_scarce_machines_fail_the_up_with_zone_and_reason(lived: Life) -> None:
    seen = lived.sold_out
    assert not seen.succeeded
    assert "[GCE_STOCKOUT]" in seen.output and "zones/us-central1-c' does not have enough" in seen.output
    # GKE keeps waiting for machines: the pool exists, and the state has it as not ready.
    assert seen.pool["id"] and "Expected 1, running 0" in " ".join(seen.pool["initErrors"])
    assert seen.known == seen.clouds


def test_the_next_up_continues_with_the_pool_as_it_is(lived: Life) -> None:
    before, after = lived.sold_out.pool, lived.killed.pool
    assert after["id"] == before["id"] and not after.get("initErrors")
    assert {*lived.sold_out.known} < {*lived.killed.known}


def test_a_killed_engine_leaves_unconfirmed_resources(lived: Life) -> None:
    assert not lived.killed.succeeded
    assert {*lived.killed.clouds} - {*lived.killed.known}, "the kill hit nothing"


def test_the_next_up_deletes_them_and_makes_the_rest_once(lived: Life) -> None:
    seen = lived.finished
    assert seen.succeeded, seen.output
    assert "removed the lock" in seen.recovered and "was creating" in seen.recovered
    assert seen.known == seen.clouds
    assert {*lived.killed.known} < {*seen.known}
    # Nothing that was there already is made again, changed or replaced.
    assert {*seen.changes} == {"create", "same"}


def test_nothing_but_the_audit_log_is_left_after_destroy(lived: Life) -> None:
    assert lived.destroyed.succeeded, lived.destroyed.output
    assert lived.destroyed.engine == {}
    # The audit log is a setting of the project, on which others may rely.
    assert [urn.rpartition("::")[2] for urn, _ in lived.destroyed.clouds] == ["dev-storage-access-log-audit"]
