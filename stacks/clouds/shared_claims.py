"""Claims of a team on the shared file system, with the same names on every cloud."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from components.kubernetes.volumes import VolumeArgs, VolumeSourceArgs
from stacks.parts import SharedFolder

CHECKPOINTS, DATASETS, SHARED_DATASETS, HOME = "checkpoints", "datasets", "shared-datasets", "home"
# The folder beside the checkpoints that is linked to, or copied from, the bucket of datasets.
_DATASET_FOLDER = "datasets"


class Source(Protocol):
    """The file system of a cloud as a volume: a folder of it."""

    def __call__(self, folder: str, *, read_only: bool) -> VolumeSourceArgs:
        """Only this folder, which must exist."""


@dataclass(frozen=True)
class SharedClaims:
    """The claims of a team on the shared file system, and their folders there."""

    volumes: Mapping[str, VolumeArgs] = field(default_factory=dict)
    written: tuple[str, ...] = ()
    """Folders that the team writes to."""
    read: tuple[str, ...] = ()
    """Folders that it reads alone."""


def shared_claims(shared: SharedFolder, source: Source, *, below: str, common: str) -> SharedClaims:
    """The team's own folders are `below` those of checkpoints and of datasets; `common` is every team's."""
    written = {CHECKPOINTS: f"{shared.folder}/{below}"}
    read = {DATASETS: f"{_DATASET_FOLDER}/{below}", SHARED_DATASETS: f"{_DATASET_FOLDER}/{common}"}
    volumes: dict[str, VolumeArgs] = {
        claim: {
            "source": source(folder, read_only=claim in read),
            "capacity_gib": shared.volume["capacity_gib"],
        }
        for claim, folder in {**written, **read}.items()
    }
    return SharedClaims(volumes, tuple(written.values()), tuple(read.values()))
