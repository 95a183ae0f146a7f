"""A team's part of the buckets, not readable by other teams; with a cluster and without."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp.pod_account import FolderRightArgs, GcpPodAccount

# Below this folder every team has its own, in every bucket and file system.
TEAMS = "teams"
# The account of pods without a service account: a job needs no setting for its permissions.
SERVICE_ACCOUNT = "default"
READ, WRITE = "roles/storage.objectViewer", "roles/storage.objectUser"


class GcpTeamDataArgs(TypedDict):
    """The team's data, and the pods with access."""

    project: str
    """Id of the project."""
    project_number: pulumi.Input[str]
    """Number of that project."""
    namespace: NotRequired[str]
    """The team's namespace. Default: there is no cluster, and roles on the folders are granted elsewhere."""
    folder: str
    """Name of the team's folder in buckets and file systems."""
    checkpoint_bucket: pulumi.Input[str]
    """Name of the bucket of checkpoints."""
    dataset_bucket: pulumi.Input[str]
    """Name of the bucket of datasets."""
    shared_folder: pulumi.Input[str]
    """Managed folder of the datasets that every team reads, with a slash at its end."""
    mounted_buckets: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Buckets of datasets that pods mount as a whole, by a name of your own. Default: none."""
    rapid_bucket: NotRequired[pulumi.Input[str]]
    """A second bucket for checkpoints. Default: there is none."""


class GcpTeamData(Component):
    """Managed folders for the team, and roles on them for the pods of its namespace.

    Pods read `shared/` and `teams/<folder>/` of the datasets, and read, write and delete below
    `teams/<folder>/` of the checkpoints; nothing else. A role on a managed folder also covers the names of
    its objects: listing with the folder as prefix is allowed, any other is not. A condition on the names of
    objects could not do that, as listing is an action on the bucket (Cloud Storage documentation, "Managed
    folders" and "IAM conditions"). Cloud Storage FUSE opens a bucket by listing it without a prefix, so what
    it mounts are buckets of their own, read as a whole. They need no permission on the key of the buckets:
    Cloud Storage uses it.

    Data outlives all of this: when the team is removed, or gets another folder, its objects stay where they
    are (`forceDestroy` of a managed folder deletes only the folder's roles), accessible to administrators.
    *Untested in a real project.*
    """

    datasets: pulumi.Output[str]
    """The team's managed folder in the bucket of datasets."""
    checkpoints: pulumi.Output[str]
    """The team's managed folder in the bucket of checkpoints."""

    def __init__(self, name: str, args: GcpTeamDataArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        own = f"{TEAMS}/{args['folder']}/"
        datasets, shared = args["dataset_bucket"], args["shared_folder"]
        rights: dict[str, FolderRightArgs] = {
            "shared": {"resource": datasets, "folder": shared, "role": READ},
            "datasets": self._folder(f"{name}-datasets", datasets, own, READ),
            "checkpoints": self._folder(f"{name}-checkpoints", args["checkpoint_bucket"], own, WRITE),
        }
        if "rapid_bucket" in args:
            rights["rapid"] = self._folder(f"{name}-rapid", args["rapid_bucket"], own, WRITE)
        if "namespace" in args:
            GcpPodAccount(
                f"{name}-pods",
                {
                    "project": args["project"],
                    "project_number": args["project_number"],
                    "namespace": args["namespace"],
                    "service_account": SERVICE_ACCOUNT,
                    "folders": rights,
                    "buckets": {
                        key: {"resource": bucket, "role": READ}
                        for key, bucket in args.get("mounted_buckets", {}).items()
                    },
                },
                self.child(),
            )
        folders = {what: pulumi.Output.from_input(one["folder"]) for what, one in rights.items()}
        self.datasets, self.checkpoints = folders["datasets"], folders["checkpoints"]
        self.register_declared()

    def _folder(self, name: str, bucket: pulumi.Input[str], folder: str, role: str) -> FolderRightArgs:
        made = gcp.storage.ManagedFolder(
            name, bucket=bucket, name=folder, force_destroy=True, opts=self.child()
        )
        return {"resource": bucket, "folder": made.name, "role": role}
