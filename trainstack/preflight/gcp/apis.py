"""The check of the APIs that the stack uses."""

from collections.abc import Iterator

from infra.catalog.gcp import deploying
from infra.stackspec.layouts import SmallLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.project import Project, enable

_CHECK = "apis"


def wanted(project: Project) -> list[str]:
    """The APIs of this stack, without those of parts that its spec lacks."""
    if isinstance(project.layout, SmallLayout):
        return deploying.apis_of_jobs(scheduled=project.spec.smoke.schedule is not None)
    data = project.spec.data
    shared, kept = data.shared_fs is not None, data.on_destroy == "keep"
    return deploying.apis_of(shared_fs=shared, homes=data.homes, kept=kept)


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
    else:
        yield Answer(_CHECK, State.READY, f"{len(names)} APIs are enabled")
