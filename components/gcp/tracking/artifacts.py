"""The tracking server's folder of the artifacts, and its permissions; with a cluster and without."""

from collections.abc import Sequence
from typing import Final

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp import iam

ARTIFACT_PREFIX: Final = "mlflow"
"""Everything the server stores is below this folder of the artifact bucket."""
_ROLES: Final = ("roles/storage.objectCreator", "roles/storage.objectViewer")


def artifact_folder(
    component: Component,
    name: str,
    bucket: pulumi.Input[str],
    member: pulumi.Input[str],
    formerly: Sequence[pulumi.Alias] = (),
) -> list[pulumi.Resource]:
    """Permissions of `member` on the folder. Deleting it deletes them; objects stay where they are.

    `formerly` is the folder's former URN: a stack that grows keeps it, because a second managed folder of one
    name is rejected.
    """
    folder = gcp.storage.ManagedFolder(
        f"{name}-artifacts",
        bucket=bucket,
        name=f"{ARTIFACT_PREFIX}/",
        force_destroy=True,
        opts=component.child(pulumi.ResourceOptions(aliases=[*formerly])),
    )
    return [
        iam.on_folder(
            component, f"{name}-artifacts-{role.rpartition('.')[2]}", folder.bucket, folder.name, role, member
        )
        for role in _ROLES
    ]
