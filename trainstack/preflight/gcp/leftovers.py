"""The check of resources of others, or of an earlier deployment, under a name that the stack needs."""

from collections.abc import Iterator

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.project import Project, Row

_CHECK = "leftovers"


def cluster(project: Project) -> Row | None:
    """The cluster of the stack's name; None before there is one."""
    name = f"{project.location}/clusters/{project.spec.name}"
    return project.found("container.projects.locations.clusters.get", name=name)


def names(project: Project) -> Iterator[Answer]:
    """No cluster of another owner has the stack's name, and an earlier one left no disks.

    Names of keys, buckets, networks and the database end in random characters, so they cannot conflict.
    """
    found = cluster(project)
    if found is not None and not project.owns(found.get("resourceLabels")):
        text = f"{project.location} has a cluster {project.spec.name} of another owner"
        yield Answer(_CHECK, State.SHORT, text, "Give the stack another name.")
        return
    if found is None:
        rows = [
            row
            for _, row in project.everywhere("compute.disks.aggregatedList", "disks")
            if project.owns(row.get("labels"))
        ]
        if rows:
            size = sum(int(row.get("sizeGb", 0)) for row in rows)
            text = f"{len(rows)} disks of an earlier cluster still exist; {size} GB are billed"
            fix = (
                f"gcloud compute disks list --project={project.on.project} "
                f"--filter=labels.goog-k8s-cluster-name={project.spec.name}"
            )
            yield Answer(_CHECK, State.NOTE, text, fix)
            return
    yield Answer(_CHECK, State.READY, "no cluster or disk conflicts with the stack")
