"""The idle GPU watcher of a cluster: its namespace, its permissions, its pod."""

import json
from collections.abc import Sequence
from typing import TypedDict

import pulumi

from components.base import Component, Options
from components.kubernetes.monitoring.names import PROMETHEUS_PORT, QUERIES_LABEL
from components.kubernetes.programs.deployment import ProgramDeployment, program_deployment
from components.kubernetes.programs.namespace import AccessRule, ProgramNamespace, granted, settled
from components.kubernetes.programs.program import Program

NAMESPACE = "trainstack-idle"
NAME = "idle"
PROGRAM = Program(
    "agents.idle_gpus.watch",
    imports=(
        "agents.idle_gpus.actions",
        "agents.idle_gpus.decisions",
        "agents.idle_gpus.history",
        "agents.idle_gpus.holders",
        "agents.idle_gpus.jobs",
        "agents.idle_gpus.measures",
        "agents.shared.dcgm",
        "agents.shared.events",
        "agents.shared.exposition",
        "agents.shared.health",
        "agents.shared.jobs",
        "agents.shared.kueue",
        "agents.shared.prometheus",
        "agents.shared.times",
        "infra.quantity",
        "smoke_training.checkpoint_policy",
    ),
)
# Users of a pruner report that engines load weights for 35 minutes (wseaton/gpu-pruner, its issues; read
# 2026-11-22): pods that started within the hour are not touched.
STARTUP_S = 3600
# Each round lists the pods of each namespace: at most 10 lists a minute, however many teams there are.
EVERY_S, EACH_S = 60, 6
# Its permissions in the namespace of a team, by API group.
RULES = (
    AccessRule("", ("pods",), ("list", "patch", "delete")),
    AccessRule("", ("events",), ("create",)),
    AccessRule("kueue.x-k8s.io", ("workloads",), ("list", "patch")),
    # The jobs that it stops.
    AccessRule("batch", ("jobs",), ("get",)),
    AccessRule("jobset.x-k8s.io", ("jobsets",), ("get",)),
    AccessRule("trainer.kubeflow.org", ("trainjobs",), ("get",)),
    AccessRule("apps", ("replicasets",), ("get",)),
    AccessRule("apps", ("statefulsets/scale", "deployments/scale"), ("patch",)),
)


class IdleGpusArgs(TypedDict):
    """Arguments of `IdleGpus`."""

    prometheus: pulumi.Input[str]
    """URL of Prometheus, such as `http://prometheus.monitoring:9090`."""
    namespaces: Sequence[str]
    """Namespaces of teams, in which it acts."""
    interactive_pools: Sequence[str]
    """Pools whose pods are sessions."""
    minutes: int
    """Minutes for which GPUs must be idle."""
    grace_minutes: int
    """Minutes between the announcement and the stop."""
    jobs: str
    """`announce` or `stop`."""
    interval_s: int
    """A holder with a checkpoint younger than this is not touched."""
    image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run."""


class IdleGpus(Component):
    """A Deployment that notifies holders of idle GPUs, and stops them after a while.

    It reads and changes pods and Workloads in the namespaces of teams, and nothing elsewhere. It comes after
    these namespaces.
    """

    namespace: pulumi.Output[str]
    """Its namespace; its metrics are at `/metrics` of port 8080."""

    def __init__(self, name: str, args: IdleGpusArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        home = ProgramNamespace(NAMESPACE, NAME, asks=(PROMETHEUS_PORT,), labels={QUERIES_LABEL: "allowed"})
        needs = settled(name, home, self.child)
        rights = granted(
            name, home, RULES, needs, self.child, called="trainstack-idle-gpus", namespaces=args["namespaces"]
        )
        runs = ProgramDeployment(
            program=PROGRAM,
            name=NAME,
            namespace=NAMESPACE,
            account=NAME,
            image=args["image"],
            arguments={
                "prometheus": args["prometheus"],
                # Sorted, so that the order makes no difference.
                "namespaces": json.dumps(sorted(args["namespaces"])),
                "interactive-pools": json.dumps(sorted(args["interactive_pools"])),
                "minutes": str(args["minutes"]),
                "grace-minutes": str(args["grace_minutes"]),
                "jobs": args["jobs"],
                "interval-s": str(args["interval_s"]),
                "startup-s": str(STARTUP_S),
                "every-s": str(max(EVERY_S, EACH_S * len(args["namespaces"]))),
            },
        )
        program_deployment(f"{name}-program", runs, [*needs, *rights], self.child)
        self.namespace = pulumi.Output.from_input(NAMESPACE)
        self.register_declared()
