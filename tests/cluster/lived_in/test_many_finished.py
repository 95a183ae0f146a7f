"""A stack with a long history: a team with many finished jobs leaves, and the rest goes on."""

import time
from typing import Any

import pytest

from tests.cluster.lived_in.stack import LivedIn
from tests.cluster.lived_in.users import RESEARCH, VISION, Users
from tests.cluster.waiting import eventually

# `alone` and `more`: thousands of objects load the machine.
pytestmark = [pytest.mark.timeout(1800), pytest.mark.more, pytest.mark.alone]
OLD = 1_000
"""Finished jobs, each with its Workload and its pod."""
LIMIT_S = 300


def _vision_leaves(spec: Any) -> None:
    spec["teams"] = [team for team in spec["teams"] if team["name"] != "Vision"]


def test_a_team_with_a_long_history_leaves_in_time(lived: LivedIn, users: Users) -> None:
    users.job(RESEARCH, "train", pods=2)
    users.reach({(RESEARCH, "train"): "running"})
    before = users.pods([RESEARCH])
    users.finished(VISION, OLD)
    eventually(lambda: list(users.states().values()).count("finished") == OLD, patience_s=1200)
    began = time.monotonic()
    lived.change(_vision_leaves)
    assert time.monotonic() - began < LIMIT_S
    assert lived.api.find("v1", "Namespace", VISION) is None
    assert users.pods([RESEARCH]) == before
