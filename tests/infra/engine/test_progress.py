"""Progress of an operation of the engine, as a user without a terminal reads it."""

import io

import pytest
from pulumi.automation.events import EngineEvent
from rich.console import Console

from infra.engine import progress
from infra.engine.progress import Progress


def _urn(name: str) -> str:
    return f"urn:pulumi:dev::trainstack::kubernetes:apps/v1:Deployment::{name}"


def _event(kind: str, content: dict[str, object]) -> EngineEvent:
    return EngineEvent.from_json({"sequence": 1, "timestamp": 0, kind: content})


def _step(kind: str, name: str) -> EngineEvent:
    metadata = {
        "op": "create", "urn": _urn(name), "type": "kubernetes:apps/v1:Deployment", "provider": "",
        "old": None, "new": None, "keys": None, "diffs": None, "detailedDiff": None, "logical": True,
    }  # fmt: skip
    return _event(kind, {"metadata": metadata, "planning": False, "status": 0, "steps": 0})


def _waits(name: str, text: str) -> EngineEvent:
    shown = {"message": text, "color": "raw", "severity": "info", "urn": _urn(name), "ephemeral": True}
    return _event("diagnosticEvent", shown)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> tuple[Progress, io.StringIO]:
    monkeypatch.setattr(progress, "_QUIET_INTERVAL_S", 0.0)
    out = io.StringIO()
    return Progress("up", Console(file=out, width=400)), out


def test_a_line_says_what_a_resource_under_way_waits_for(shown: tuple[Progress, io.StringIO]) -> None:
    under_way, out = shown

    def line() -> str:
        under_way.tick()
        return out.getvalue().splitlines()[-1]

    for event in (
        _step("resourcePreEvent", "first"), _step("resourcePreEvent", "second"),
        _waits("first", "needs a node"), _waits("second", "pulls its image"),
    ):  # fmt: skip
        under_way.take(event)
    assert "2 under way" in line() and "needs a node" in line() and "pulls" not in line()
    under_way.take(_step("resOutputsEvent", "first"))
    assert "1 under way" in line() and "pulls its image" in line() and "needs" not in line()
    under_way.take(_step("resOpFailedEvent", "second"))
    assert "0 under way" in line() and "pulls" not in line()
