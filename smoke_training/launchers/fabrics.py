"""What pods of a run need on the nodes of a fabric besides its devices, and how a run gets it (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NotRequired, TypedDict

from smoke_training.launchers.runplan import Mount, RunPlan, Sidecar


class SidecarArgs(TypedDict):
    """A container that a fabric needs in every pod, beside that of the run."""

    name: str
    image: str
    command: Sequence[str]
    env: Mapping[str, str]
    capabilities: Sequence[str]
    """What its root may do besides what containers may."""
    host_folders: Mapping[str, str]
    """Folders of the node that it sees, by their path in it."""
    ready_file: NotRequired[str]
    """A file that it writes once it works. Default: it works once it runs."""
    cpu: int
    """Cores that it takes of a node."""
    memory_gib: int
    """GiB that it takes of a node."""


class PodNeeds(TypedDict):
    """What pods need on a kind of nodes besides what they request."""

    env: Mapping[str, str]
    """Variables of the run's container."""
    profile: NotRequired[str]
    """A file of bash on the node that sets the variables of the fabric. Default: there is none."""
    annotations: Mapping[str, str]
    """Annotations of the pod, such as the networks that it is in."""
    host_folders: Mapping[str, str]
    """Folders of the node that the run's container sees, by their path in it."""
    shared_folder: NotRequired[str]
    """A folder that the run's container and the sidecar share. Default: none."""
    sidecar: NotRequired[SidecarArgs]
    """Default: none."""


def on_nodes(plan: RunPlan, needs: PodNeeds | None) -> RunPlan:
    """The run with all that its pods need on such nodes; what it says itself goes before."""
    if needs is None:
        return plan
    shared = _shared(needs)
    sidecars = (_sidecar(needs["sidecar"], shared),) if "sidecar" in needs else ()
    return replace(
        plan,
        env={**needs["env"], **plan.env},
        profile=plan.profile or needs.get("profile"),
        annotations={**needs["annotations"], **plan.annotations},
        mounts=(*plan.mounts, *_host_mounts(needs["host_folders"]), *shared),
        sidecars=(*plan.sidecars, *sidecars),
    )


def reaches_node(needs: PodNeeds | None) -> bool:
    """Whether such pods see folders of their node, which no Pod Security Standard allows."""
    return needs is not None and bool(needs["host_folders"] or "sidecar" in needs)


def _shared(needs: PodNeeds) -> tuple[Mount, ...]:
    folder = needs.get("shared_folder")
    return (Mount(name="fabric", path=folder),) if folder else ()


def _sidecar(args: SidecarArgs, shared: tuple[Mount, ...]) -> Sidecar:
    return Sidecar(
        name=args["name"],
        image=args["image"],
        command=tuple(args["command"]),
        env=args["env"],
        capabilities=tuple(args["capabilities"]),
        mounts=(*_host_mounts(args["host_folders"]), *shared),
        ready_file=args.get("ready_file"),
        cpu=args["cpu"],
        memory_gib=args["memory_gib"],
    )


def _host_mounts(folders: Mapping[str, str]) -> tuple[Mount, ...]:
    """Mounts named after the folder on the node, so that containers that see the same one share a volume."""
    return tuple(
        Mount(name=f"node-{host.strip('/').replace('/', '-').replace('_', '-')}", path=path, host=host)
        for path, host in folders.items()
    )
