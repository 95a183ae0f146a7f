"""One command at a time on a rehearsed stack, and what a killed one left is put right first."""

import json
import os
import socket
from pathlib import Path

import pytest

from infra.errors import UserError
from rehearsal.client import Rehearsal
from rehearsal.recovery import alone, recover


def test_of_two_commands_on_one_stack_the_second_is_refused(tmp_path: Path) -> None:
    clouds = Rehearsal(tmp_path)
    with alone(clouds, "p", "dev"):
        refused = pytest.raises(UserError, match="is being worked on by another trainstack command")
        with refused, alone(clouds, "p", "dev"):
            raise AssertionError("both hold the stack")
        with alone(clouds, "p", "other"):
            pass
    with alone(clouds, "p", "dev"):
        pass


def test_a_living_pulumi_is_waited_for_and_a_dead_one_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "state" / ".pulumi" / "locks" / "organization" / "p" / "dev"
    folder.mkdir(parents=True)
    content = {
        "username": "u",
        "hostname": socket.gethostname(),
        "timestamp": "2999-01-01T00:00:00.123456789Z",
    }
    (folder / "a.json").write_text(json.dumps({**content, "pid": 2**22 + 1}))
    said = recover(Rehearsal(tmp_path), "p", "dev")
    assert len(said) == 1 and f"removed the lock of process {2**22 + 1}" in said[0]
    (folder / "b.json").write_text(json.dumps({**content, "pid": os.getpid()}))
    with pytest.raises(UserError, match=f"process {os.getpid()}"):
        recover(Rehearsal(tmp_path), "p", "dev")
