"""The Job that moves jobs away from clusters that leave a manager: what disconnects them comes after it."""

from collections.abc import Sequence

import pulumi
from pulumi_kubernetes import batch, core, meta

from components.base import Child
from components.kubernetes import access
from components.kubernetes.access import bound_role, may
from components.kubernetes.charts import charts
from components.kubernetes.programs.program import Program, digest
from components.kubernetes.waiting.job import WaitingProgram, waiting_job

PROGRAM = Program(
    "agents.clusters.leaving",
    imports=["agents.clusters.dispatch", "agents.shared.kueue", "agents.shared.times"],
)
NAME = "clusters-leave"
_KUEUE = "kueue.x-k8s.io"
RULES = (
    may(_KUEUE, "multikueueclusters", "list"),
    may(_KUEUE, "resourceflavors", "list", "patch"),
    may(_KUEUE, "workloads", "list"),
    may(_KUEUE, "workloads/status", "patch"),
)
# Kueue moves jobs of a cluster that cannot be reached after `WORKER_LOST_TIMEOUT`, ten minutes; a pod that is
# stopped may have minutes for its checkpoint.
LIMIT_S = 1200


def clusters_leave(
    name: str,
    clusters: Sequence[str],
    needs: Sequence[pulumi.Resource],
    *,
    image: pulumi.Input[str],
    child: Child,
) -> batch.v1.Job:
    """The Job for a manager with these clusters; another set of them is another Job.

    `needs`: Kueue, in whose namespace it runs: no queue manages that, and it reaches the API server.
    """
    namespace = charts()["kueue"].namespace
    account = core.v1.ServiceAccount(
        f"{name}-account",
        metadata=meta.v1.ObjectMetaArgs(name=NAME, namespace=namespace),
        automount_service_account_token=False,
        opts=child(pulumi.ResourceOptions(depends_on=needs)),
    )
    rights = bound_role(
        name, f"trainstack-{NAME}", RULES, access.account(NAME, namespace), child, needs=[account]
    )
    waits = WaitingProgram(
        program=PROGRAM,
        arguments={"names": ",".join(clusters), "seconds": str(LIMIT_S)},
        name=f"{NAME}-{digest(*sorted(clusters), PROGRAM.digest)}",
        namespace=namespace,
        account=NAME,
        image=image,
        limit_s=LIMIT_S,
    )
    return waiting_job(name, waits, [*needs, rights], child)
