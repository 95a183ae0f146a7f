"""Managed folders of the artifacts for people: code, and outputs of runs."""

from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options

CODE, RUNS = "code", "runs"
"""In the bucket of artifacts: packs of code by their digest, and outputs of jobs besides checkpoints."""


class GcpJobFoldersArgs(TypedDict):
    """The bucket."""

    artifact_bucket: pulumi.Input[str]
    """Name of the bucket of artifacts."""


class GcpJobFolders(Component):
    """Managed folders, on which roles can be granted.

    Those of teams are of `GcpTeamData`, as in a cluster. Objects stay when a folder is deleted
    (`forceDestroy` of a managed folder deletes only the folder's roles). *Untested in a real project.*
    """

    code: pulumi.Output[str]
    """Managed folder of packs of code."""
    runs: pulumi.Output[str]
    """Managed folder of outputs of jobs."""

    def __init__(self, name: str, args: GcpJobFoldersArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        self.code = self._folder(f"{name}-{CODE}", args["artifact_bucket"], f"{CODE}/")
        self.runs = self._folder(f"{name}-{RUNS}", args["artifact_bucket"], f"{RUNS}/")
        self.register_declared()

    def _folder(self, name: str, bucket: pulumi.Input[str], folder: str) -> pulumi.Output[str]:
        return gcp.storage.ManagedFolder(
            name, bucket=bucket, name=folder, force_destroy=True, opts=self.child()
        ).name
