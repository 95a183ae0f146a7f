"""One command at a time on a rehearsed stack, after recovery from a killed one."""

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
        with pytest.raises(UserError) as caught, alone(clouds, "p", "dev"):
            raise AssertionError("both hold the stack")
        assert caught.value.codes == (("stack-is-busy", "--stack"),)
        with alone(clouds, "p", "other"):
            pass
    with alone(clouds, "p", "dev"):
        pass


def test_the_lock_of_a_dead_pulumi_is_removed_and_of_a_living_one_kept(tmp_path: Path) -> None:
    folder = tmp_path / "state" / ".pulumi" / "locks" / "organization" / "p" / "dev"
    folder.mkdir(parents=True)
    content = {
        "username": "u",
        "hostname": socket.gethostname(),
        "timestamp": "2999-01-01T00:00:00.123456789Z",
    }
    (folder / "a.json").write_text(json.dumps({**content, "pid": 2**22 + 1}))
    (step,) = recover(Rehearsal(tmp_path), "p", "dev")
    assert f"process {2**22 + 1}" in step
    (folder / "b.json").write_text(json.dumps({**content, "pid": os.getpid()}))
    with pytest.raises(UserError, match=f"process {os.getpid()}"):
        recover(Rehearsal(tmp_path), "p", "dev")
