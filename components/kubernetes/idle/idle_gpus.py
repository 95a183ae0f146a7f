"""What looks for idle GPUs in a cluster: its namespace, its rights, its one pod."""

import json
from collections.abc import Sequence
from typing import TypedDict

import pulumi

from components.base import Component
from components.kubernetes.monitoring.places import PROMETHEUS_PORT, QUERIES_LABEL
from components.kubernetes.programs.home import Home, Rule, granted, settled
from components.kubernetes.programs.program import Program
from components.kubernetes.programs.standing import Standing, standing

NAMESPACE = "trainstack-idle"
NAME = "idle"
PROGRAM = Program(
    "agents.idle_gpus.watch",
    imports=(
        "agents.idle_gpus.actions",
        "agents.idle_gpus.decisions",
        "agents.idle_gpus.holders",
        "agents.idle_gpus.measures",
        "agents.shared.dcgm",
        "agents.shared.events",
        "agents.shared.exposition",
        "agents.shared.health",
        "agents.shared.prometheus",
        "agents.shared.times",
        "smoke_training.launchers.checkpoint_policy",
    ),
)
# Users of a pruner report that engines load weights for 35 minutes (wseaton/gpu-pruner, its issues; read
# 2026-11-22): what started within the hour is left alone.
STARTUP_S = 3600
EVERY_S = 60
# What it does in the namespace of a team, by API group.
RULES = (
    Rule("", ("pods",), ("list", "patch", "delete")),
    Rule("", ("events",), ("create",)),
    Rule("kueue.x-k8s.io", ("workloads",), ("list", "patch")),
    Rule("apps", ("replicasets",), ("get",)),
    Rule("apps", ("statefulsets/scale", "deployments/scale"), ("patch",)),
)


class IdleGpusArgs(TypedDict):
    """Arguments of `IdleGpus`."""

    prometheus: pulumi.Input[str]
    """Where Prometheus answers, such as `http://prometheus.monitoring:9090`."""
    namespaces: Sequence[str]
    """Namespaces of teams, in which it acts."""
    interactive_pools: Sequence[str]
    """Pools whose pods are sessions."""
    minutes: int
    """So long GPUs have to do nothing."""
    grace_minutes: int
    """So long after the announcement a holder goes on."""
    jobs: str
    """`announce` or `stop`."""
    interval_s: int
    """A holder that wrote a checkpoint less than this ago is not touched."""
    image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run."""


class IdleGpus(Component):
    """A Deployment that tells holders of idle GPUs, and stops them after a while.

    It sees and changes pods and Workloads in the namespaces of teams, and nothing elsewhere. It comes after
    what makes these namespaces.
    """

    namespace: pulumi.Output[str]
    """Where it runs; its metrics are at `/metrics` of port 8080."""

    def __init__(self, name: str, args: IdleGpusArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        home = Home(NAMESPACE, NAME, asks=(PROMETHEUS_PORT,), labels={QUERIES_LABEL: "allowed"})
        needs = settled(name, home, self.child)
        rights = granted(
            name, home, RULES, needs, self.child, called="trainstack-idle-gpus", namespaces=args["namespaces"]
        )
        runs = Standing(
            program=PROGRAM,
            name=NAME,
            namespace=NAMESPACE,
            account=NAME,
            image=args["image"],
            arguments={
                "prometheus": args["prometheus"],
                # In another order they are the same.
                "namespaces": json.dumps(sorted(args["namespaces"])),
                "interactive-pools": json.dumps(sorted(args["interactive_pools"])),
                "minutes": str(args["minutes"]),
                "grace-minutes": str(args["grace_minutes"]),
                "jobs": args["jobs"],
                "interval-s": str(args["interval_s"]),
                "startup-s": str(STARTUP_S),
                "every-s": str(EVERY_S),
            },
        )
        standing(f"{name}-program", runs, [*needs, *rights], self.child)
        self.namespace = pulumi.Output.from_input(NAMESPACE)
        self.register_outputs({"namespace": self.namespace})
