"""What looks for idle GPUs in a cluster: its namespace, its rights, its one pod."""

import json
from collections.abc import Sequence
from typing import Any, TypedDict

import pulumi
from pulumi_kubernetes import core, meta, networking, rbac

from components.base import Component
from components.kubernetes.fence import METRICS_LABEL, out_to_dns, restricted
from components.kubernetes.monitoring.places import PROMETHEUS_PORT, QUERIES_LABEL
from components.kubernetes.people import RBAC
from components.kubernetes.programs.program import Program
from components.kubernetes.programs.standing import PORT, Standing, standing

NAMESPACE = "trainstack-idle"
NAME = "idle"
PROGRAM = Program(
    "components.kubernetes.idle.watch",
    imports=(
        "components.kubernetes.idle.actions",
        "components.kubernetes.idle.decisions",
        "components.kubernetes.idle.holders",
        "components.kubernetes.idle.measures",
        "components.kubernetes.programs.health",
        "smoke_training.launchers.checkpoint_policy",
    ),
)
# Users of a pruner report that engines load weights for 35 minutes (wseaton/gpu-pruner, its issues; read
# 2026-11-22): what started within the hour is left alone.
STARTUP_S = 3600
EVERY_S = 60
# What it does in the namespace of a team, by API group.
RULES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("", ("pods",), ("list", "patch", "delete")),
    ("", ("events",), ("create",)),
    ("kueue.x-k8s.io", ("workloads",), ("list", "patch")),
    ("apps", ("replicasets",), ("get",)),
    ("apps", ("statefulsets/scale", "deployments/scale"), ("patch",)),
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
        needs = [*self._home(name), *self._rights(name, args["namespaces"])]
        runs = Standing(
            program=PROGRAM,
            name=NAME,
            namespace=NAMESPACE,
            account=NAME,
            image=args["image"],
            arguments={
                "prometheus": args["prometheus"],
                "namespaces": json.dumps(list(args["namespaces"])),
                "interactive-pools": json.dumps(list(args["interactive_pools"])),
                "minutes": str(args["minutes"]),
                "grace-minutes": str(args["grace_minutes"]),
                "jobs": args["jobs"],
                "interval-s": str(args["interval_s"]),
                "startup-s": str(STARTUP_S),
                "every-s": str(EVERY_S),
            },
        )
        standing(f"{name}-program", runs, needs, self.child)
        self.namespace = pulumi.Output.from_input(NAMESPACE)
        self.register_outputs({"namespace": self.namespace})

    def _home(self, name: str) -> list[pulumi.Resource]:
        """A namespace: in come readers of metrics, out go names, HTTPS and questions to Prometheus."""
        space = core.v1.Namespace(
            f"{name}-namespace",
            metadata={"name": NAMESPACE, "labels": {**restricted(), QUERIES_LABEL: "allowed"}},
            opts=self.child(),
        )
        inside = self.child(pulumi.ResourceOptions(depends_on=[space]))
        readers = {"namespace_selector": {"match_labels": {METRICS_LABEL: "allowed"}}}
        # Any: mypy takes very long for a literal against the SDK's nested types.
        spec: Any = {
            "pod_selector": {},
            "policy_types": ["Ingress", "Egress"],
            "ingress": [{"from_": [readers], "ports": [{"port": PORT, "protocol": "TCP"}]}],
            "egress": [
                out_to_dns(),
                {"ports": [{"port": port, "protocol": "TCP"} for port in (443, PROMETHEUS_PORT)]},
            ],
        }
        policy = networking.v1.NetworkPolicy(
            f"{name}-policy", metadata={"name": NAME, "namespace": NAMESPACE}, spec=spec, opts=inside
        )
        account = core.v1.ServiceAccount(
            f"{name}-account",
            metadata=meta.v1.ObjectMetaArgs(name=NAME, namespace=NAMESPACE),
            automount_service_account_token=False,
            opts=inside,
        )
        return [policy, account]

    def _rights(self, name: str, namespaces: Sequence[str]) -> list[pulumi.Resource]:
        bindings: list[pulumi.Resource] = []
        for namespace in namespaces:
            metadata = meta.v1.ObjectMetaArgs(name="idle-gpus", namespace=namespace)
            role = rbac.v1.Role(
                f"{name}-{namespace}-role",
                metadata=metadata,
                rules=[
                    rbac.v1.PolicyRuleArgs(api_groups=[group], resources=list(kinds), verbs=list(verbs))
                    for group, kinds, verbs in RULES
                ],
                opts=self.child(),
            )
            bindings.append(
                rbac.v1.RoleBinding(
                    f"{name}-{namespace}-binding",
                    metadata=metadata,
                    role_ref=rbac.v1.RoleRefArgs(api_group=RBAC, kind="Role", name="idle-gpus"),
                    subjects=[rbac.v1.SubjectArgs(kind="ServiceAccount", name=NAME, namespace=NAMESPACE)],
                    opts=self.child(pulumi.ResourceOptions(depends_on=[role])),
                )
            )
        return bindings
