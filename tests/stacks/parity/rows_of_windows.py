"""The table: fields about when jobs may use a pool, which both clouds honour in the same way."""

from collections.abc import Mapping
from typing import Any

from tests.stacks.parity.rows import BOTH, Each, Row, both

_BLOCK = Each("cr-0aaaaaaaaaaaaaaa2", "projects/example-ml-dev/reservations/number-2")
_HOURS = {"days": ["SA"], "start": "20:00", "hours": 10, "classes": ["sweep"]}
_FROM, _TO = "2026-12-01T11:30:00Z", "2026-12-08T11:30:00Z"
# A block of one week, in which sweeps run in the night to Sunday.
_POOL = {
    cloud: {
        "layout.pools.0.purchase": {"kind": "block", "id": _BLOCK.of(cloud), "starts": _FROM, "ends": _TO},
        "layout.pools.0.hours": _HOURS,
    }
    for cloud in BOTH
}
_MACHINE: Mapping[str, Mapping[str, Any]] = {
    "aws": {"layout.pools.0.machine": "p5.48xlarge", "layout.pools.0.zones": ["us-east-1a"]},
    "gcp": {"layout.pools.0.machine": "a3-megagpu-8g", "on.pools": {}},
}

GIVEN: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "windows": {cloud: {**_MACHINE[cloud], **_POOL[cloud]} for cloud in BOTH}
}


def _seen(field: str, value: str) -> str:
    """Settings of its agent."""
    return rf"Deployment capacity-keeper .*window-a100\.{field}: .* -> {value}"


COMMON: dict[str, Row] = dict(
    [
        both(
            "windows",
            "layout.pools[].purchase=block.starts",
            "2026-12-02T11:30:00Z",
            _seen("block.starts", '"2026-12-02T11:30:00Z"'),
            at="layout.pools.0.purchase.starts",
        ),
        both(
            "windows",
            "layout.pools[].purchase=block.ends",
            "2026-12-09T11:30:00+01:00",
            _seen("block.ends", '"2026-12-09T10:30:00Z"'),
            at="layout.pools.0.purchase.ends",
        ),
        both("windows", "layout.pools[].hours.days", ["SU"], _seen(r"hours.days\[0\]", '"SU"')),
        both("windows", "layout.pools[].hours.start", "21:00", _seen("hours.start", '"21:00"')),
        both("windows", "layout.pools[].hours.hours", 9, _seen("hours.hours", "9")),
        both(
            "windows",
            "layout.pools[].hours.classes",
            ["sweep", "default"],
            _seen(r"hours.classes\[1\]", '"default"'),
        ),
        both("hours", "layout.pools[].hours", _HOURS, r"^\+ AdmissionCheck .*window-a100"),
    ]
)
