"""The check of the APIs that the stack uses."""

from collections.abc import Iterator

from infra.catalog.gcp import deploying
from infra.clouds.gcp.api import DISABLED, ApiRequestError
from infra.stackspec import StackSpec
from infra.stackspec.layouts import SmallLayout
from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.project import Project, enable

_CHECK = "apis"


def wanted(project: Project) -> list[str]:
    """The APIs of the project's stack."""
    return wanted_by(project.spec, federated=project.federated)


def wanted_by(spec: StackSpec, *, federated: bool = False) -> list[str]:
    """The APIs of a stack, without those of parts that its spec lacks.

    `federated`: its manager is on another cloud.
    """
    if isinstance(spec.layout, SmallLayout):
        return deploying.apis_of_jobs(scheduled=spec.smoke.schedule is not None)
    data = spec.data
    shared, kept = data.shared_fs is not None, data.on_destroy == "keep"
    if isinstance(spec.layout, SlurmLayout):
        return deploying.apis_of_slurm(shared_fs=shared, homes=data.homes, kept=kept)
    return deploying.apis_of(shared_fs=shared, homes=data.homes, kept=kept, federated=federated)


def enabled(project: Project) -> Iterator[Answer]:
    """Every API that the stack uses is enabled in the project."""
    rows = project.items(
        "serviceusage.services.list", "services", parent=project.path, filter="state:ENABLED"
    )
    on = {str(row["name"]).rpartition("/")[2] for row in rows if row.get("state") == "ENABLED"}
    names = wanted(project)
    off = [name for name in names if name not in on]
    if off:
        text = f"disabled in {project.on.project}: {', '.join(off)}"
        yield Answer(_CHECK, State.SHORT, text, enable(off, project))
    elif early := [name for name in names if _refuses(project, name)]:
        text = f"enabled in {project.on.project}, and not yet usable: {', '.join(early)}"
        yield Answer(_CHECK, State.SHORT, text, "Wait some minutes: Google propagates an enabled API.")
    else:
        yield Answer(_CHECK, State.READY, f"{len(names)} APIs are enabled")


def _refuses(project: Project, name: str) -> bool:
    """Return whether a service that is enabled still answers as a disabled one.

    Service Usage reports an API as enabled before the service knows it (terraform-google-project-factory
    issue 753; the text of the error says "wait a few minutes").
    """
    probes = {
        "compute.googleapis.com": ("compute.zones.list", {"project": project.on.project}),
        "container.googleapis.com": (
            "container.projects.locations.getServerConfig",
            {"name": project.location},
        ),
        "file.googleapis.com": (
            "file.projects.locations.instances.list",
            {"parent": f"{project.path}/locations/-"},
        ),
        "monitoring.googleapis.com": (
            "monitoring.projects.notificationChannels.list",
            {"name": project.path},
        ),
        "pubsub.googleapis.com": ("pubsub.projects.topics.list", {"project": project.path}),
    }
    if name not in probes:
        return False
    method, given = probes[name]
    try:
        project.asked(method, **given)
    except ApiRequestError as error:
        return error.code == DISABLED  # other errors are those of other checks
    return False
