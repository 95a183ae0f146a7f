"""A Deployment with one pod that runs a program of `agents/` as long as the stack exists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_kubernetes import apps

from agents.shared.health import ADDRESS
from components.base import Child
from components.kubernetes.programs.program import PodSettings, Program, config_map, pod

PORT = 8080
_APP = "app.kubernetes.io/name"
_PROBE = {"http_get": {"path": "/healthz", "port": PORT}}


@dataclass(frozen=True)
class ProgramDeployment:
    """A long-running program, which serves /healthz and /metrics at `PORT` (`health.py`)."""

    program: Program
    name: str
    """Name of the Deployment, of its ConfigMap (with a digest) and of the label `app.kubernetes.io/name`."""
    namespace: pulumi.Input[str]
    """A namespace that no queue manages."""
    account: str
    """Its service account, with the program's permissions only."""
    image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run."""
    arguments: Mapping[str, pulumi.Input[str]]
    """Given as `--key value`, beside `--account` and `--port`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_mib: int = 128


def program_deployment(
    name: str,
    runs: ProgramDeployment,
    needs: Sequence[pulumi.Resource],
    child: Child,
) -> apps.v1.Deployment:
    """The Deployment, with its program. It never has two pods at once, because both would write."""
    config_name = f"{runs.name}-{runs.program.digest}"
    made_of = child(pulumi.ResourceOptions(depends_on=needs))
    config = config_map(name, runs.program, config_name, runs.namespace, made_of)
    running = PodSettings(
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
        # Slower than readiness: a restart helps a program that hangs, but not an API server that is down.
        "liveness_probe": {**_PROBE, "period_seconds": 30, "failure_threshold": 4},
    }
    labels = {_APP: runs.name}
    # Prometheus reads the metrics of all pods with this label (`monitoring/scrapes.py`).
    pod_labels = {**labels, "app.kubernetes.io/part-of": "trainstack"}
    # Any: mypy needs 10 GB and more for a literal against the SDK's nested types.
    spec: Any = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"match_labels": labels},
        "template": {
            "metadata": {"labels": pod_labels},
            "spec": pod(runs.program, running, "Always", **container),
        },
    }
    return apps.v1.Deployment(
        name,
        metadata={"name": runs.name, "namespace": runs.namespace, "labels": labels},
        spec=spec,
        opts=child(pulumi.ResourceOptions(depends_on=[*needs, config])),
    )
