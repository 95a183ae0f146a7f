"""The check of the deployer's permissions in the project, by IAM."""

from collections.abc import Iterator, Sequence

from infra.alarms import storage as storage_alarms
from infra.catalog.gcp import deploying
from infra.catalog.gcp.pools import stays_idle
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, InClusterMonitoring, SmallLayout
from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.project import Project

_CHECK = "permissions"
# IAM refuses longer lists (Resource Manager documentation, projects.testIamPermissions).
_AT_ONCE = 100


def deploying_in(project: Project) -> Iterator[Answer]:
    """Every permission of the catalog that this stack needs is granted on the project.

    Permissions that are granted only on single resources (with conditions) are reported as missing.
    """
    wanted = permissions(project.spec, federated=project.federated)
    granted: set[str] = set()
    for start in range(0, len(wanted), _AT_ONCE):
        granted |= _granted(project, wanted[start : start + _AT_ONCE])
    missing = [one for one in wanted if one not in granted]
    for service in sorted({one.partition(".")[0] for one in missing}):
        those = [one for one in missing if one.partition(".")[0] == service]
        fix = (
            f"Grant a role that has them to {project.who or 'the deployer'} "
            "(docs/reference/preflight.md, Deploying into Google Cloud); "
            "--skip permissions if they are granted on the stack's own resources."
        )
        yield Answer(_CHECK, State.SHORT, f"no role on {project.on.project} allows: {', '.join(those)}", fix)
    if not missing:
        yield Answer(_CHECK, State.READY, f"{len(wanted)} permissions are granted on {project.on.project}")


def permissions(spec: StackSpec, *, federated: bool = False) -> list[str]:
    """The permissions for the resource types of this stack, without those of parts that its spec lacks.

    `federated`: its manager is on another cloud.
    """
    on, layout = spec.on, spec.layout
    assert isinstance(on, GcpSpec) and isinstance(layout, ClusterLayout | SmallLayout | SlurmLayout)
    if isinstance(layout, SmallLayout):
        return deploying.permissions_of_jobs(
            scheduled=spec.smoke.schedule is not None, login=on.login is not None
        )
    if isinstance(layout, SlurmLayout):
        data = spec.data
        return deploying.permissions_of_slurm(
            shared_fs=data.shared_fs is not None, homes=data.homes, kept=data.on_destroy == "keep"
        )
    watched = [one for one in layout.pools if stays_idle(one.machine, one.min_nodes)]
    # Alerts of the cluster are mailed by policies on a log, those about storage by policies on its metrics.
    mails = isinstance(layout.monitoring, InClusterMonitoring) or storage_alarms.on_gcp(spec)
    absent = {
        "gcp:filestore/": not spec.data.homes,
        "gcp:lustre/": spec.data.shared_fs is None,
        "gcp:backupdisasterrecovery/": not spec.data.homes or spec.data.on_destroy != "keep",
        # Managed Lustre is copied to buckets and from them.
        "gcp:cloudscheduler/": spec.data.shared_fs is None,
        "gcp:storage/bucketIAMMember:": spec.data.shared_fs is None and not on.dataset_claims,
        "gcp:monitoring/alertPolicy:": not (spec.smoke.schedule or watched or mails),
        "gcp:storage/anywhereCache:": not on.dataset_cache,
        "gcp:iam/": not federated,
        # Verdicts of scheduled validations are published.
        "gcp:pubsub/": not spec.smoke.schedule,
    }
    left_out = tuple(prefix for prefix, none in absent.items() if none)
    rows = [
        row
        for row in deploying.permissions().values()
        if row.on == "project" and row.of in ("every", "cluster")
    ]
    return sorted({one for row in rows if not row.type.startswith(left_out) for one in row.permissions})


def _granted(project: Project, asked: Sequence[str]) -> set[str]:
    method = "cloudresourcemanager.projects.testIamPermissions"
    response = project.asked(method, resource=project.path, permissions=[*asked])
    return {str(one) for one in response.get("permissions") or ()}
