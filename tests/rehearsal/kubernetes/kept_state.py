"""State that an engine keeps after failed creates and updates, on any provider: one stack in several steps.

tests/cluster/provider runs the same steps on the real provider and a real control plane.
"""

import re
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
from pulumi import automation

from tests.rehearsal.runs.updates import counts, refused

Select = Callable[[Callable[[], None]], automation.Stack]

TIMED_OUT = "failed to fully initialize or become live: timed out waiting for the condition"
REFUSED = "value: Forbidden: may not be changed in an update."


class Kept:
    """A namespace, a ConfigMap with an awaited label, a suspended Job, and a PriorityClass."""

    def __init__(self, select: Select, kubeconfig: str) -> None:
        self._select, self._kubeconfig = select, kubeconfig
        self.labels, self.value = {"stage": "new"}, 1

    def _program(self) -> None:
        named: Any = {"name": "kept-state"}
        cluster = k8s.Provider("cluster", kubeconfig=self._kubeconfig)
        space = k8s.core.v1.Namespace("space", metadata=named, opts=pulumi.ResourceOptions(provider=cluster))
        inside = pulumi.ResourceOptions(provider=cluster, depends_on=[space])

        def metadata(name: str, wait_for: str, **labels: str) -> Any:
            waits = {"pulumi.com/waitFor": wait_for, "pulumi.com/timeoutSeconds": "2"}
            return {"name": name, "namespace": "kept-state", "labels": labels, "annotations": waits}

        label = "jsonpath={.metadata.labels.stage}=ready"
        k8s.core.v1.ConfigMap("c", metadata=metadata("c", label, **self.labels), data={"a": "b"}, opts=inside)
        pod: Any = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "python:3.11"}]}
        spec: Any = {"suspend": True, "template": {"spec": pod}}
        k8s.batch.v1.Job("j", metadata=metadata("j", "jsonpath={.metadata.uid}"), spec=spec, opts=inside)
        k8s.scheduling.v1.PriorityClass("p", metadata=named, value=self.value, opts=inside)

    def up(self) -> dict[str, int]:
        """The operations of an `up`."""
        return counts(self._select(self._program).up(on_output=_ignore).summary.resource_changes)

    def refused(self) -> str:
        """The error of an `up` that has to fail, on one line."""
        return refused(self._select(self._program))

    def preview(self) -> dict[str, list[str]]:
        """Properties that the next update would change, by resource."""
        found: dict[str, list[str]] = {}

        def hear(event: Any) -> None:
            step = event.resource_pre_event and event.resource_pre_event.metadata
            if step and step.op.value != "same":
                found[step.urn.rsplit("::", 1)[-1]] = sorted(step.detailed_diff or {})

        self._select(self._program).preview(on_output=_ignore, on_event=hear)
        return found

    def refresh(self) -> str:
        """Output of a refresh, on one line."""
        said: list[str] = []
        self._select(self._program).refresh(on_output=said.append)
        return re.sub(r"\s+", " ", " ".join(said))

    def destroy(self) -> None:
        self._select(self._program).destroy(on_output=_ignore)

    def state(self, name: str) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
        """Inputs, outputs and errors of a resource in the engine's state."""
        rows: Any = (self._select(self._program).export_stack().deployment or {})["resources"]
        (row,) = [row for row in rows if row["urn"].endswith(f"::{name}")]
        return row["inputs"], row["outputs"], row.get("initErrors", [])


def a_create_that_is_not_ready(kept: Kept) -> None:
    said = kept.refused()
    assert "was successfully created, but the Kubernetes API server reported that it " + TIMED_OUT in said
    inputs, outputs, (error, *_) = kept.state("c")
    assert error.startswith('resource "urn:pulumi:dev::')
    assert error.endswith(TIMED_OUT)
    assert inputs["metadata"]["labels"] == outputs["metadata"]["labels"] == {"stage": "new"}
    # The next update changes nothing and waits again.
    assert kept.preview() == {"c": []}
    assert f'the Kubernetes API server reported that "kept-state/c" {TIMED_OUT}' in kept.refused()
    # A refresh forgets the error of a kind that reads do not judge, and finds that of one they do.
    said = kept.refresh()
    assert "Refreshed resource is in an unhealthy state: * Resource 'j' was created but failed to" in said
    assert kept.state("c")[2] == []
    assert kept.state("j")[2][0] == "Resource 'j' was created but failed to initialize"
    kept.labels = {"stage": "ready"}
    assert kept.up() == {"same": 4, "update": 2}


def an_update_that_is_refused(kept: Kept) -> None:
    kept.value = 2
    said = kept.refused()
    assert 'the Kubernetes API server reported that "kept-state" failed to fully initialize or become' in said
    assert REFUSED in said
    inputs, outputs, (error, *_) = kept.state("p")
    assert REFUSED in error
    assert inputs["value"] == outputs["value"] == 1
    # Back where it was, there is nothing to change, but one more update that clears the error.
    kept.value = 1
    assert kept.preview() == {"p": []}
    assert kept.up() == {"same": 5, "update": 1}


def an_update_that_is_not_ready(kept: Kept) -> None:
    kept.labels = {"stage": "old", "more": "1"}
    assert f'the Kubernetes API server reported that "kept-state/c" {TIMED_OUT}' in kept.refused()
    inputs, outputs, (error, *_) = kept.state("c")
    assert error == f'the Kubernetes API server reported that "kept-state/c" {TIMED_OUT}'
    # The engine keeps the old inputs and the new outputs; the provider looks through the new inputs.
    assert inputs["metadata"]["labels"] == {"stage": "ready"}
    assert outputs["metadata"]["labels"] == {"stage": "old", "more": "1"}
    assert set(outputs["__inputs"]["metadata"]["labels"]) == {"stage", "more"}
    assert kept.preview() == {"c": []}
    # A refresh looks through the old ones: what the failed update added is a change again.
    kept.refresh()
    inputs, outputs, errors = kept.state("c")
    assert errors == []
    assert inputs["metadata"]["labels"] == {"stage": "old"}
    assert outputs["metadata"]["labels"] == {"stage": "old", "more": "1"}
    assert kept.preview() == {"c": ["metadata.labels.more"], "j": []}


def _ignore(_: str) -> None:
    pass
