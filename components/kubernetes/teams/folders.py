"""Folders of a shared file system, created before pods mount them."""

from collections.abc import Sequence
from importlib import resources
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_kubernetes import batch, core, meta

from components.base import Component, Options
from components.kubernetes.network_policies import closed
from components.kubernetes.programs.program import digest
from components.kubernetes.volumes import SharedVolume, VolumeArgs
from components.ordering import after

# In a namespace of its own: a pod here can read the whole file system.
NAMESPACE, HOMES_NAMESPACE = "trainstack-storage", "trainstack-homes"
NAME = "make-folders"
_CLAIM, _MOUNT, _PROGRAM = "everything", "/volume", "/opt/trainstack"
_LIMIT_S = 600


class SharedFoldersArgs(TypedDict):
    """Arguments of `SharedFolders`."""

    volume: VolumeArgs
    """The whole file system."""
    folders: Sequence[str]
    """Paths of the folders that all users who mount them may write to."""
    read_only: Sequence[str]
    """Paths of folders that belong to root."""
    image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run."""
    namespace: NotRequired[str]
    """The namespace of the Job; one for each file system. Default: trainstack-storage."""


class SharedFolders(Component):
    """A Job that creates the folders; another list of them is another Job. Nothing is ever deleted."""

    folders: pulumi.Output[Sequence[str]]
    """All folders; dependents come after they exist."""

    def __init__(self, name: str, args: SharedFoldersArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        namespace = args.get("namespace", NAMESPACE)
        space = core.v1.Namespace(
            f"{name}-namespace",
            # Not `restricted`: only root can create the folders of a new file system.
            metadata=meta.v1.ObjectMetaArgs(
                name=namespace, labels={"pod-security.kubernetes.io/enforce": "baseline"}
            ),
            opts=self.child(),
        )
        inside = pulumi.ResourceOptions(depends_on=[space])
        # The node mounts the file system; the pod needs no network.
        alone = closed(f"{name}-policy", namespace, "closed", self.child(inside), out=False)
        text = resources.files("agents.teams").joinpath("make_folders.py").read_text(encoding="utf-8")
        program = core.v1.ConfigMap(
            f"{name}-program",
            metadata=meta.v1.ObjectMetaArgs(name=f"{NAME}-{digest(text)}", namespace=namespace),
            data={"make_folders.py": text},
            immutable=True,
            opts=self.child(inside),
        )
        volume = SharedVolume(
            f"{name}-volume", {"namespace": namespace, "claim": _CLAIM, **args["volume"]}, self.child(inside)
        )
        wanted = ["--write", *args["folders"], "--read", *args["read_only"]]
        # Any: mypy needs 10 GB and more for a literal against the SDK's nested types.
        spec: Any = {
            "backoff_limit": 3,
            "active_deadline_seconds": _LIMIT_S,
            "template": {"spec": _pod(args["image"], wanted, volume.claim_name, program.metadata.name)},
        }
        job = batch.v1.Job(
            f"{name}-job",
            metadata={
                "name": f"{NAME}-{digest(text, *wanted)}",
                "namespace": namespace,
                "annotations": {"pulumi.com/replaceUnready": "true"},
            },
            spec=spec,
            opts=self.child(pulumi.ResourceOptions(depends_on=[alone])),
        )
        self.folders = after(pulumi.Output.from_input([*args["folders"], *args["read_only"]]), [job])
        self.register_declared()


def _pod(
    image: pulumi.Input[str], wanted: Sequence[str], claim: pulumi.Input[str], program: pulumi.Input[str]
) -> dict[str, Any]:
    return {
        "restart_policy": "Never",
        "automount_service_account_token": False,
        "security_context": {"run_as_user": 0, "seccomp_profile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "folders",
                "image": image,
                "command": ["python", f"{_PROGRAM}/make_folders.py"],
                "args": [_MOUNT, *wanted],
                "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
                "security_context": {
                    "allow_privilege_escalation": False,
                    "read_only_root_filesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volume_mounts": [
                    {"name": "program", "mount_path": _PROGRAM, "read_only": True},
                    {"name": "volume", "mount_path": _MOUNT},
                ],
            }
        ],
        "volumes": [
            {"name": "program", "config_map": {"name": program}},
            {"name": "volume", "persistent_volume_claim": {"claim_name": claim}},
        ],
    }
