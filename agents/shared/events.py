"""Kubernetes Events with which a program reports on an object; standard library only."""

from collections.abc import Mapping
from typing import Any

from agents.shared.times import stamp

# Of an Event's message (Kubernetes, pkg/apis/core/validation/events.go, `NoteLengthLimit`).
MOST_LETTERS = 1024
_REFERS = ("apiVersion", "kind", "name", "uid")


def event(
    about: Mapping[str, Any],
    namespace: str,
    *,
    reason: str,
    words: str,
    kind: str,
    by: str,
    at: float,
    prefix: str = "",
    name: str = "",
) -> dict[str, Any]:
    """The Event about an object, given by its apiVersion, kind, name and, where it is known, uid.

    `kind` is Normal or Warning, `by` the program. `name`: of the Event; default: a new one that begins with
    `prefix`, by default with the object's name.
    """
    called = {"name": name} if name else {"generateName": prefix or f"{about['name']}."}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {**called, "namespace": namespace},
        "involvedObject": {**{key: about[key] for key in _REFERS if key in about}, "namespace": namespace},
        "reason": reason,
        "message": words[:MOST_LETTERS],
        "type": kind,
        "source": {"component": by},
        "firstTimestamp": stamp(at),
        "lastTimestamp": stamp(at),
        "count": 1,
    }
