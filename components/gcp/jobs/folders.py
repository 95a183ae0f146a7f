"""Folders of the artifacts to which people get rights: of code, and of what runs leave."""

from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component

CODE, RUNS = "code", "runs"
"""In the bucket of artifacts: packs of code by their digest, and what jobs write besides checkpoints."""


class GcpJobFoldersArgs(TypedDict):
    """In which bucket."""

    artifact_bucket: pulumi.Input[str]
    """Name of the bucket of artifacts."""


class GcpJobFolders(Component):
    """Managed folders, which roles may be given on.

    Those of teams are of `GcpTeamData`, as in a cluster. Objects stay when a folder goes (`forceDestroy` of
    a managed folder deletes only the folder's roles).
    *Untested in a real project.*
    """

    code: pulumi.Output[str]
    """Managed folder of packs of code."""
    runs: pulumi.Output[str]
    """Managed folder of what jobs leave."""

    def __init__(
        self, name: str, args: GcpJobFoldersArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        self.code = self._folder(f"{name}-{CODE}", args["artifact_bucket"], f"{CODE}/")
        self.runs = self._folder(f"{name}-{RUNS}", args["artifact_bucket"], f"{RUNS}/")
        self.register_outputs({"code": self.code, "runs": self.runs})

    def _folder(self, name: str, bucket: pulumi.Input[str], folder: str) -> pulumi.Output[str]:
        return gcp.storage.ManagedFolder(
            name, bucket=bucket, name=folder, force_destroy=True, opts=self.child()
        ).name
