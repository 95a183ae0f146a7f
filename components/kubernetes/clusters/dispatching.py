"""The program of the manager that sends jobs to clusters: its namespace, its permissions, its pod."""

import json
from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi

from agents.clusters.renewing import SECRETS
from components.base import Component, Options
from components.kubernetes.clusters import worker
from components.kubernetes.programs.deployment import ProgramDeployment, program_deployment
from components.kubernetes.programs.namespace import AccessRule, ProgramNamespace, granted, settled
from components.kubernetes.programs.program import Program
from components.ordering import after

NAMESPACE = "trainstack-dispatch"
NAME = "dispatcher"
PROGRAM = Program(
    "agents.clusters.controller",
    imports=[
        "agents.clusters.dispatch",
        "agents.clusters.leases",
        "agents.clusters.logins",
        "agents.clusters.nominating",
        "agents.clusters.releasing",
        "agents.clusters.renewing",
        "agents.clusters.workers",
        "agents.shared.exposition",
        "agents.shared.health",
        "agents.shared.kueue",
        "agents.shared.times",
    ],
)
_KUEUE = "kueue.x-k8s.io"
RULES = (
    AccessRule(_KUEUE, ["workloads"], ["list", "watch"]),
    AccessRule(_KUEUE, ["workloads/status"], ["patch"]),
    AccessRule(_KUEUE, ["multikueueclusters"], ["list"]),
    AccessRule(_KUEUE, ["resourceflavors"], ["list", "patch"]),
    # The counts of pods of jobs on a lost cluster become zero (`agents.clusters.releasing`).
    AccessRule("batch", ["jobs/status"], ["patch"]),
    AccessRule("jobset.x-k8s.io", ["jobsets/status"], ["patch"]),
    AccessRule("trainer.kubeflow.org", ["trainjobs/status"], ["patch"]),
)


class WorkerArgs(TypedDict):
    """A worker, and how the manager logs in to it (`agents.clusters.workers.Worker`)."""

    name: str
    """Name of the cluster."""
    server: str
    """Address of its API server, `https://...`."""
    authority: str
    """Its authority's certificate: PEM as base64, as clouds return it; empty: public authorities."""
    cluster: NotRequired[str]
    """Name of the cluster in its cloud, where the login names it (`agents.clusters.renewing`)."""
    region: NotRequired[str]
    """Its region, where the login names it."""
    role: NotRequired[str]
    """Identity that logs in, where it is not the pod's own (`agents.clusters.logins`)."""
    provider: NotRequired[str]
    """What admits the pod's identity in the cloud of the worker, where that is not its own
    (`agents.clusters.logins`)."""
    direct: NotRequired[bool]
    """True where Kueue gets the token of the login instead of one of the manager's account
    (`components.kubernetes.clusters.worker`). Default: no."""


class DispatchingArgs(TypedDict):
    """Arguments of `Dispatching`."""

    workers: pulumi.Input[Sequence[WorkerArgs]]
    """The workers, from outputs of their stacks."""
    names: Sequence[str]
    """Names of the workers, which are those of their Secrets."""
    image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run."""
    identity_ports: NotRequired[Sequence[int]]
    """Ports of the service that gives pods their cloud identity. Default: none."""


class Dispatching(Component):
    """The dispatcher of a manager, which also renews its tokens for workers.

    It comes after Kueue, in whose namespace it writes. While it is down no job goes to a worker, and those
    there run on.
    """

    program: pulumi.Output[str]
    """Name of its Deployment, once that runs."""

    def __init__(self, name: str, args: DispatchingArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        home = ProgramNamespace(NAMESPACE, NAME, asks=args.get("identity_ports", ()))
        needs = settled(name, home, self.child)
        rights = granted(name, home, RULES, needs, self.child, called=f"trainstack-{NAME}")
        secrets = granted(
            f"{name}-secrets",
            home,
            (
                AccessRule("", ["secrets"], ["patch"], args["names"]),
                # A request to create has no name yet that a role could compare.
                AccessRule("", ["secrets"], ["create"]),
            ),
            needs,
            self.child,
            called=f"trainstack-{NAME}-secrets",
            namespaces=[SECRETS],
        )
        workers: pulumi.Output[Sequence[WorkerArgs]] = pulumi.Output.from_input(args["workers"])
        given = workers.apply(_given)
        runs = ProgramDeployment(
            program=PROGRAM,
            name=NAME,
            namespace=NAMESPACE,
            account=NAME,
            image=args["image"],
            arguments={"workers": given},
        )
        made = program_deployment(f"{name}-program", runs, [*needs, *rights, *secrets], self.child)
        self.program = after(pulumi.Output.from_input(NAME), [made])
        self.register_declared()


def _given(workers: Sequence[WorkerArgs]) -> str:
    return json.dumps([_worker(row) for row in workers])


def _worker(row: WorkerArgs) -> dict[str, object]:
    account = "" if row.get("direct") else worker.ACCOUNT
    kept = {key: value for key, value in row.items() if key != "direct"}
    return {**kept, "namespace": worker.NAMESPACE, "account": account}
