"""Violations with the messages of the API server's field errors.

Source: kubernetes/kubernetes staging/src/k8s.io/apimachinery/pkg/util/validation/field.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.awaiter.kinds import awaited
from rehearsal.kubernetes.awaiter.wait_for import built_in
from rehearsal.kubernetes.rules.accessors import name

IMMUTABLE = "field is immutable"
NEGATIVE = "must be greater than or equal to 0"
_ACCEPTED = "The API server accepts the {kind} itself but none of its pods"


def required(path: str, detail: str = "", fix: str = "") -> Violation:
    """A missing value."""
    return Violation(path, "Required value" + (f": {detail}" if detail else ""), fix)


def invalid(path: str, value: Any, detail: str, fix: str = "") -> Violation:
    """A value that is not allowed."""
    return Violation(path, f"Invalid value: {_shown(value)}: {detail}", fix)


def forbidden(path: str, detail: str, fix: str = "") -> Violation:
    """A value that must not be set."""
    return Violation(path, f"Forbidden: {detail}", fix)


def duplicate(path: str, value: Any) -> Violation:
    """A value that is already used."""
    return Violation(path, f"Duplicate value: {_shown(value)}")


def unsupported(path: str, value: Any, supported: Iterable[str]) -> Violation:
    """A value outside of a fixed set."""
    choices = ", ".join(json.dumps(choice) for choice in supported)
    return Violation(path, f"Unsupported value: {_shown(value)}: supported values: {choices}")


def not_found(path: str, value: Any, fix: str = "") -> Violation:
    """A reference to a missing object."""
    return Violation(path, f"Not found: {_shown(value)}", fix)


def no_pod(inputs: Mapping[str, Any], path: str, detail: str, fix: str = "") -> Violation:
    """A pod that admission refuses, or that the controller of an accepted object will never get.

    The latter is a warning where the provider does not wait for the pods.
    """
    kind, own = str(inputs["kind"]), name(inputs)
    if kind == "Pod":
        return Violation(path, f'pods "{own}" is forbidden: {detail}', fix, "Forbidden")
    waited_for = f"{inputs['apiVersion']} {kind}" in awaited() and built_in(inputs)
    then = ": a real update waits for them in vain." if waited_for else "."
    fix = f"{fix} {_ACCEPTED.format(kind=kind)}{then}".lstrip()
    return Violation(path, f'pods "{own}-..." is forbidden: {detail}', fix, "Forbidden", not waited_for)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value)
    return json.dumps(value, default=str) if isinstance(value, dict | list | bool) else str(value)
