"""The program on a worker that ends jobs of a manager that has been away: its permissions and its pod."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi

from agents.clusters.leases import LEASE
from agents.clusters.leases import NAMESPACE as LEASES
from components.base import Component, Options
from components.kubernetes.programs.deployment import ProgramDeployment, program_deployment
from components.kubernetes.programs.namespace import AccessRule, ProgramNamespace, granted, settled
from components.kubernetes.programs.program import Program
from components.ordering import after

NAMESPACE, NAME = "trainstack-fence", "fence"
PROGRAM = Program(
    "agents.clusters.fence",
    imports=[
        "agents.clusters.leases",
        "agents.clusters.workers",
        "agents.shared.exposition",
        "agents.shared.health",
        "agents.shared.kueue",
        "agents.shared.times",
    ],
)
_JOBS = (
    ("kueue.x-k8s.io", "workloads"),
    ("batch", "jobs"),
    ("jobset.x-k8s.io", "jobsets"),
    ("trainer.kubeflow.org", "trainjobs"),
)
LISTS = tuple(AccessRule(group, [kind], ["list"]) for group, kind in _JOBS)
DELETES = tuple(AccessRule(group, [kind], ["delete"]) for group, kind in _JOBS)


class FencingArgs(TypedDict):
    """Arguments of `Fencing`."""

    namespaces: Sequence[str]
    """Namespaces of teams, in which the manager runs jobs."""
    image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run."""
    after_s: NotRequired[int]
    """Seconds without the manager after which its jobs end. Default: five minutes, half of the time until the
    manager starts them elsewhere."""


class Fencing(Component):
    """Ends a manager's jobs on a worker that the manager does not reach, before they start elsewhere.

    It comes after the manager's access (`worker.ManagerAccess`), in whose namespace it reads the manager's
    Lease. While it is down, jobs of a lost worker may run twice.
    """

    program: pulumi.Output[str]
    """Name of its Deployment, once that runs."""

    def __init__(self, name: str, args: FencingArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        home = ProgramNamespace(NAMESPACE, NAME)
        needs = settled(name, home, self.child)
        lease = (AccessRule("coordination.k8s.io", ["leases"], ["get"], [LEASE]),)
        rights = [
            *granted(f"{name}-lists", home, LISTS, needs, self.child, called="trainstack-fence-lists"),
            *granted(
                f"{name}-jobs", home, DELETES, needs, self.child,
                called="trainstack-fence-jobs", namespaces=args["namespaces"],
            ),
            *granted(
                f"{name}-lease", home, lease, needs, self.child,
                called="trainstack-fence-lease", namespaces=[LEASES],
            ),
        ]  # fmt: skip
        words = {"after-s": str(args["after_s"])} if "after_s" in args else {}
        runs = ProgramDeployment(
            program=PROGRAM,
            name=NAME,
            namespace=NAMESPACE,
            account=NAME,
            image=args["image"],
            arguments=words,
        )
        made = program_deployment(f"{name}-program", runs, [*needs, *rights], self.child)
        self.program = after(pulumi.Output.from_input(NAME), [made])
        self.register_declared()
