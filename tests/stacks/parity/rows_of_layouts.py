"""The table, continued: what stacks with a cluster need that others do not have, and the other way round."""

from collections.abc import Mapping
from typing import Any

from tests.stacks.parity.model import Outcome, Refused
from tests.stacks.parity.rows import BOTH, both

_OF_TWO_TEAMS = {"layout.pools.0.teams": ["Research", "Vision"], "teams.2.gpus": {"l4": 4}}
GIVEN: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "pool of two teams": dict.fromkeys(BOTH, _OF_TWO_TEAMS)
}

_TEAMS, _TEAMS_SEEN = both(
    "pool of two teams",
    "layout.pools[].teams",
    ["Research", "Vision", "Applied ML"],
    r"^\+ LocalQueue .*team-applied-ml-a100",
)
COMMON: dict[str, dict[str, Outcome]] = {
    _TEAMS: _TEAMS_SEEN,
    "budget.over_budget": {
        cloud: Refused("budget.over_budget", "stop", "budget.over_budget", r"teams\[\]\.over_budget")
        for cloud in ("aws", "gcp")
    },
    "tracking": {
        cloud: Refused("tracking", None, "tracking", "^Add it: The MLflow server") for cloud in ("aws", "gcp")
    },
}
