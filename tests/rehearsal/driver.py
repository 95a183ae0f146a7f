"""Driver of an emulated cloud: calls it as the provider does, without an engine."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rehearsal.core.model import Call, Diff, EmulatedCloud, ProviderInstance, RefusalError
from rehearsal.core.state import State

# Shared by all tests, as it is by all rehearsals of a checkout.
CACHE = Path(__file__).resolve().parents[2] / ".trainstack" / "cache" / "schemas"


def refused(match: str, call: Callable[..., Any], /, *arguments: Any, **inputs: Any) -> None:
    """Require that a call is refused with a code and message that match."""
    with pytest.raises(RefusalError, match=match):
        call(*arguments, **inputs)


class Driver:
    """Creates, updates and deletes by logical name, as the engine would; types are given without package.

    `made` holds (full type, id, checked inputs, outputs) by name, `said` the logged messages.
    """

    def __init__(self, package: str, state: State, cloud: EmulatedCloud, config: dict[str, Any]) -> None:
        self.package, self.state, self.cloud, self.config = package, state, cloud, config
        self.made: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {}
        self.said: list[str] = []

    def call(self, token: str, name: str) -> Call:
        """A request about the resource `name` of a full type."""
        urn = f"urn:pulumi:dev::p::{token}::{name}"
        instance = ProviderInstance(self.package, self.config)
        log = lambda _severity, text: self.said.append(text)  # noqa: E731
        return Call(instance, self.cloud.canonical(token), urn, threading.Event(), log, None, name.encode())

    def check(self, token: str, name: str = "x", /, **inputs: Any) -> dict[str, str]:
        """Property -> reason of each failure."""
        _, failures = self.cloud.check(self.call(f"{self.package}:{token}", name), None, inputs)
        return {failure.property: failure.reason for failure in failures}

    def create(
        self, token: str, name: str = "x", /, *, preview: bool = False, **inputs: Any
    ) -> dict[str, Any]:
        """The outputs, and the id among them."""
        call = self.call(f"{self.package}:{token}", name)
        checked, failures = self.cloud.check(call, None, inputs)
        assert failures == [], name
        key, outputs = self.cloud.create(call, checked, preview=preview)
        self.made[name] = (call.type, key, checked, outputs)
        return {**outputs, "id": key}

    def invoke(self, token: str, /, **args: Any) -> dict[str, Any]:
        """The result of a function; its token is given without package."""
        return self.cloud.invoke(ProviderInstance(self.package, self.config), f"{self.package}:{token}", args)

    def update(self, name: str, /, **inputs: Any) -> dict[str, Any]:
        token, key, old, outputs = self.made[name]
        call = self.call(token, name)
        checked, failures = self.cloud.check(call, old, inputs)
        assert failures == [], name
        outputs = self.cloud.update(call, key, outputs, checked, preview=False)
        self.made[name] = (token, key, checked, outputs)
        return outputs

    def diff(self, name: str, /, **inputs: Any) -> Diff:
        token, key, old, outputs = self.made[name]
        call = self.call(token, name)
        checked, _ = self.cloud.check(call, old, inputs)
        return self.cloud.diff(call, key, old, outputs, checked)

    def refresh(self, name: str) -> dict[str, Any] | None:
        """The outputs that a read finds, which replace those of the state; None when it is gone."""
        token, key, inputs, outputs = self.made[name]
        call = replace(self.call(token, name), remembered=outputs)
        found = self.cloud.read(call, key, inputs)
        if found is None:
            del self.made[name]
            return None
        self.made[name] = (token, key, *found)
        return found[1]

    def get(self, token: str, id: str) -> dict[str, Any] | None:
        """The outputs of a resource of the cloud, as `get` of a program reads it; None without one."""
        found = self.cloud.read(self.call(f"{self.package}:{token}", "got"), id, {})
        return found and found[1]

    def imported(self, token: str, name: str, id: str, /, **inputs: Any) -> Diff:
        """The differences between a resource that exists and the program that imports it."""
        call = self.call(f"{self.package}:{token}", name)
        found = self.cloud.read(call, id, {})
        assert found is not None, id
        checked, failures = self.cloud.check(call, None, inputs)
        assert failures == [], name
        self.made[name] = (call.type, str(found[1].get("id", id)), checked, found[1])
        return self.cloud.diff(call, id, *found, checked)

    def delete(self, name: str) -> None:
        token, key, _, outputs = self.made[name]
        self.cloud.delete(self.call(token, name), key, outputs)
        del self.made[name]
