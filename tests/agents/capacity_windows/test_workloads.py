"""Workloads that the controller of windows handles."""

from typing import Any

import pytest

from agents.capacity_windows.workloads import is_away, is_reserved, sent_away_by
from agents.shared.kueue import AWAY_NOTE


def workload(*conditions: str, active: bool = True, note: str | None = None) -> dict[str, Any]:
    return {
        "metadata": {"annotations": {AWAY_NOTE: note} if note else {}},
        "spec": {"active": active},
        "status": {"conditions": [{"type": one, "status": "True"} for one in conditions]},
    }


def test_only_those_that_it_sent_away_are_called_back() -> None:
    away = workload("Evicted", active=False, note="window-h100: the pool opens at 8")
    assert is_away(away) and sent_away_by(away) == "window-h100"
    # Another actor deactivated it, or activated it since.
    assert not is_away(workload("Evicted", active=False))
    assert not is_away(workload(note="window-h100: the pool opens at 8"))


@pytest.mark.parametrize(
    ("found", "reserved"),
    [
        (workload("QuotaReserved"), True),
        (workload("QuotaReserved", "Admitted", "PodsReady"), True),
        (workload(), False),
        (workload("QuotaReserved", "Evicted"), False),
        (workload("QuotaReserved", "Finished"), False),
        # It is on its way out.
        (workload("QuotaReserved", active=False), False),
    ],
)
def test_a_job_that_keeps_its_quota_is_answered(found: dict[str, Any], reserved: bool) -> None:
    assert is_reserved(found) is reserved
