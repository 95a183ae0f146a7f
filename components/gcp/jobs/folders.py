"""Folders of the buckets to which people get rights: of their team, of code, and of what runs leave."""

from collections.abc import Sequence
from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.teams.team_data import TEAMS

CODE, RUNS = "code", "runs"
"""In the bucket of artifacts: packs of code by their digest, and what jobs write besides checkpoints."""


class GcpJobFoldersArgs(TypedDict):
    """Whose folders, in which buckets."""

    teams: Sequence[str]
    """Names of the teams' folders."""
    checkpoint_bucket: pulumi.Input[str]
    """Name of the bucket of checkpoints."""
    dataset_bucket: pulumi.Input[str]
    """Name of the bucket of datasets."""
    artifact_bucket: pulumi.Input[str]
    """Name of the bucket of artifacts."""


class GcpJobFolders(Component):
    """Managed folders, which roles may be given on.

    `teams/<folder>/` in the buckets of datasets and checkpoints, `code/` and `runs/` in that of artifacts.
    Objects stay when a folder goes (`forceDestroy` of a managed folder deletes only the folder's roles).
    *Untested in a real project.*
    """

    datasets: dict[str, pulumi.Output[str]]
    """By team's folder: its managed folder in the bucket of datasets."""
    checkpoints: dict[str, pulumi.Output[str]]
    """By team's folder: its managed folder in the bucket of checkpoints."""
    code: pulumi.Output[str]
    """Managed folder of packs of code."""
    runs: pulumi.Output[str]
    """Managed folder of what jobs leave."""

    def __init__(
        self, name: str, args: GcpJobFoldersArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        self.datasets = {
            team: self._folder(f"{name}-datasets-{team}", args["dataset_bucket"], f"{TEAMS}/{team}/")
            for team in args["teams"]
        }
        self.checkpoints = {
            team: self._folder(f"{name}-checkpoints-{team}", args["checkpoint_bucket"], f"{TEAMS}/{team}/")
            for team in args["teams"]
        }
        self.code = self._folder(f"{name}-{CODE}", args["artifact_bucket"], f"{CODE}/")
        self.runs = self._folder(f"{name}-{RUNS}", args["artifact_bucket"], f"{RUNS}/")
        self.register_outputs(
            {
                "datasets": self.datasets,
                "checkpoints": self.checkpoints,
                "code": self.code,
                "runs": self.runs,
            }
        )

    def _folder(self, name: str, bucket: pulumi.Input[str], folder: str) -> pulumi.Output[str]:
        return gcp.storage.ManagedFolder(
            name, bucket=bucket, name=folder, force_destroy=True, opts=self.child()
        ).name
