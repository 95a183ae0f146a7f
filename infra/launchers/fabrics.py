"""Requirements of a fabric for a run's pods besides devices, and their addition to a run plan (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NotRequired, TypedDict

from infra.launchers.runplan import Mount, Plugin, RunPlan, Sidecar


class SidecarArgs(TypedDict):
    """Additional container that a fabric requires in every pod."""

    name: str
    image: str
    command: Sequence[str]
    env: Mapping[str, str]
    capabilities: Sequence[str]
    """Additional Linux capabilities of its root."""
    host_folders: Mapping[str, str]
    """Folders of the node mounted in it, by path."""
    ready_file: NotRequired[str]
    """File that it writes when ready. Default: ready when running."""
    cpu: int
    """Cores that it requests."""
    memory_gib: int
    """GiB that it requests."""


class PluginArgs(TypedDict):
    """Plugin of NCCL that an agent installs on nodes."""

    image: str
    """Image that the agent pulled to the node, with bash."""
    installed: str
    """File in containers with GPUs that the agent creates last."""
    folder: NotRequired[str]
    """Folder of the plugin in containers with GPUs. Default: it has none of its own."""
    linked: NotRequired[str]
    """Path at which the run's container has that folder, too; with `folder`."""
    paired: NotRequired[bool]
    """True: a daemon in the pod needs this version. Default: a newer one is used as well."""


class PodNeeds(TypedDict):
    """Requirements of pods on a kind of nodes, besides resource requests."""

    env: Mapping[str, str]
    """Variables of the run's container."""
    profile: NotRequired[str]
    """Bash file on the node that sets the variables of the fabric. Default: none."""
    plugin: NotRequired[PluginArgs]
    """Plugin without which the fabric is not used: pods wait for it. Default: none."""
    annotations: Mapping[str, str]
    """Annotations of the pod, such as its networks."""
    host_folders: Mapping[str, str]
    """Folders of the node mounted in the run's container, by path."""
    shared_folder: NotRequired[str]
    """Folder shared by the run's container and the sidecar. Default: none."""
    sidecar: NotRequired[SidecarArgs]
    """Default: none."""


def on_nodes(plan: RunPlan, needs: PodNeeds | None) -> RunPlan:
    """Return the run with these requirements added; its own fields take precedence."""
    if needs is None:
        return plan
    shared = _shared(needs)
    sidecars = (_sidecar(needs["sidecar"], shared),) if "sidecar" in needs else ()
    return replace(
        plan,
        env={**needs["env"], **plan.env},
        profile=plan.profile or needs.get("profile"),
        plugin=plan.plugin or (Plugin(**needs["plugin"]) if "plugin" in needs else None),
        annotations={**needs["annotations"], **plan.annotations},
        mounts=(*plan.mounts, *_host_mounts(needs["host_folders"]), *shared),
        sidecars=(*plan.sidecars, *sidecars),
    )


def reaches_node(needs: PodNeeds | None) -> bool:
    """Report whether such pods mount folders of their node, which Pod Security Standards forbid."""
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
    """Return mounts named after the node's folder, so that containers with the same one share a volume."""
    return tuple(
        Mount(name=f"node-{host.strip('/').replace('/', '-').replace('_', '-')}", path=path, host=host)
        for path, host in folders.items()
    )
