"""What a former life of the stack, or somebody else, has under a name that the stack needs."""

from collections.abc import Iterator

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.project import Project, Row

_CHECK = "leftovers"


def cluster(project: Project) -> Row | None:
    """The cluster of the stack's name; None before there is one."""
    name = f"{project.location}/clusters/{project.spec.name}"
    return project.found("container.projects.locations.clusters.get", name=name)


def names(project: Project) -> Iterator[Answer]:
    """No cluster of another owner has the stack's name, and a former one left no disks behind.

    Names of keys, buckets, networks and the database end in what the engine draws, so none is in the way.
    """
    found = cluster(project)
    if found is not None and not project.owns(found.get("resourceLabels")):
        said = f"{project.location} has a cluster {project.spec.name} that is not of this stack"
        yield Answer(_CHECK, State.SHORT, said, "Give the stack another name.")
        return
    if found is None:
        rows = [
            row
            for _, row in project.everywhere("compute.disks.aggregatedList", "disks")
            if project.owns(row.get("labels"))
        ]
        if rows:
            size = sum(int(row.get("sizeGb", 0)) for row in rows)
            said = f"{len(rows)} disks of a former cluster are left, {size} GB that cost money"
            fix = (
                f"gcloud compute disks list --project={project.on.project} "
                f"--filter=labels.goog-k8s-cluster-name={project.spec.name}"
            )
            yield Answer(_CHECK, State.NOTE, said, fix)
            return
    yield Answer(_CHECK, State.READY, "nothing of another cluster stands in the way")
