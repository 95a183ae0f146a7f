"""A Deployment whose one pod runs a program of this tree for as long as the stack stands."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_kubernetes import apps

from agents.shared.health import ADDRESS
from components.kubernetes.programs.program import Program, Running, config_map, pod

PORT = 8080
_APP = "app.kubernetes.io/name"
_PROBE = {"http_get": {"path": "/healthz", "port": PORT}}


@dataclass(frozen=True)
class Standing:
    """What the pod runs, as whom; it answers /healthz and /metrics at `PORT` (`health.py`)."""

    program: Program
    name: str
    """Name of the Deployment, of its ConfigMap (with a digest) and of the label `app.kubernetes.io/name`."""
    namespace: pulumi.Input[str]
    """One that no queue manages."""
    account: str
    """Its service account, which has the program's rights and no other."""
    image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run."""
    arguments: Mapping[str, pulumi.Input[str]]
    """Given as `--key value`, beside `--account` and `--port`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_mib: int = 128


def standing(
    name: str,
    runs: Standing,
    needs: Sequence[pulumi.Resource],
    child: Callable[..., pulumi.ResourceOptions],
) -> apps.v1.Deployment:
    """The Deployment, with its program. There is never a second pod beside the first: one writes."""
    config_name = f"{runs.name}-{runs.program.digest}"
    made_of = child(pulumi.ResourceOptions(depends_on=needs))
    config = config_map(name, runs.program, config_name, runs.namespace, made_of)
    running = Running(
        container=runs.name,
        image=runs.image,
        account=runs.account,
        config=config_name,
        arguments={**runs.arguments, "port": str(PORT)},
        environment={**runs.environment, ADDRESS: "0.0.0.0"},  # noqa: S104 - the pod's own
        memory_mib=runs.memory_mib,
    )
    container = {
        "ports": [{"name": "metrics", "container_port": PORT}],
        "readiness_probe": {**_PROBE, "period_seconds": 10},
        # Slower than readiness: a restart helps a program that hangs, and no API server that is away.
        "liveness_probe": {**_PROBE, "period_seconds": 30, "failure_threshold": 4},
    }
    labels = {_APP: runs.name}
    # Prometheus reads the metrics of all pods with this label (`monitoring/scrapes.py`).
    told = {**labels, "app.kubernetes.io/part-of": "trainstack"}
    # Any: mypy needs 10 GB and more for a literal against the SDK's nested types.
    spec: Any = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"match_labels": labels},
        "template": {
            "metadata": {"labels": told},
            "spec": pod(runs.program, running, "Always", **container),
        },
    }
    return apps.v1.Deployment(
        name,
        metadata={"name": runs.name, "namespace": runs.namespace, "labels": labels},
        spec=spec,
        opts=child(pulumi.ResourceOptions(depends_on=[*needs, config])),
    )
