"""AWS Parallel Computing Service: sizes of controllers, versions of Slurm, settings, names."""

import datetime
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from infra.catalog.fact import Count, Fact, Name
from infra.catalog.tables import read_table
from infra.errors import Problem

Level = Literal["cluster", "group", "queue", "slurmdbd"]
# botocore 1.44.5 pcs/2023-02-10: ClusterName, ComputeNodeGroupName, QueueName.
_NAME = re.compile(r"(?!pcs_)[A-Za-z][A-Za-z0-9-]+")
_MOST_LETTERS: Final = {"cluster": 40, "group": 25, "queue": 25}
_FEWEST_LETTERS: Final = 3
GRES_SETTINGS: Final = "25.11"
"""First version in which idle times of groups can be set (API_ComputeNodeGroupSlurmConfiguration)."""
REGISTER: Final = "pcs:RegisterComputeNodeGroupInstance"
"""Action by which an instance joins its group."""
GROUP_TAG: Final = "aws:pcs:compute-node-group-id"
"""Tag that the service puts on the instances of a group."""
ROLE_PREFIX: Final = "AWSPCS"
"""Start of the names of instance roles; a path `/aws-pcs/` is the other way (User Guide,
security-instance-profiles_create)."""
IMAGES: Final = "/aws/service/pcs/ami/dlami-base-ubuntu2404/x86_64/latest/ami-id"
"""Parameter with the newest image of the service. It changes: a stack has the id itself (awslabs/
awsome-distributed-ai PR 1120: nodes of one group differed after a scale-out)."""


class PcsSize(Fact):
    """A size of the controller."""

    name: Name
    nodes: Count
    jobs: Count
    """Jobs that run and wait at the same time."""


class PcsVersion(Fact):
    """A version of Slurm."""

    name: Name
    end_of_life: datetime.date | None = None
    """Last day on which a cluster can be created; None: unknown."""


class PcsSettings(Fact):
    """Names of Slurm's settings that a user may change at one level."""

    level: Level
    names: tuple[Name, ...] = Field(strict=False)


class PcsCatalog:
    """Tables of the service; each is read on first use."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def sizes(self) -> Mapping[str, PcsSize]:
        """Sizes by name, smallest first."""
        return read_table(self._path, "size", PcsSize, "name")

    @cached_property
    def versions(self) -> Mapping[str, PcsVersion]:
        """Versions by name, oldest first."""
        return read_table(self._path, "version", PcsVersion, "name")

    @cached_property
    def settings(self) -> Mapping[Level, PcsSettings]:
        """Settings by level."""
        return read_table(self._path, "settings", PcsSettings, "level")

    def size_for(self, nodes: int, jobs: int) -> str:
        """The smallest size for these nodes and jobs; the largest if none is large enough."""
        fits = (one.name for one in self.sizes.values() if nodes <= one.nodes and jobs <= one.jobs)
        return next(fits, list(self.sizes)[-1])


pcs: Final = PcsCatalog(Path(__file__).parent / "tables" / "pcs.toml")


def version_problems(path: str, version: str, on: datetime.date) -> Iterator[Problem]:
    """A cluster with a version can be created on a day."""
    open_ = [one.name for one in pcs.versions.values() if one.end_of_life is None or on < one.end_of_life]
    fix = f"Use one of {', '.join(open_)}."
    row = pcs.versions.get(version)
    if row is None:
        yield Problem(path, version, "not a version of AWS PCS", fix, code="pcs-version-unknown")
    elif row.end_of_life is not None and on >= row.end_of_life:
        rule = (
            f"AWS PCS ended it on {row.end_of_life}: no new cluster is accepted, and old ones are suspended"
        )
        yield Problem(path, version, rule, fix, code="pcs-version-ended")


def size_problems(path: str, size: str, *, nodes: int, jobs: int, against: str) -> Iterator[Problem]:
    """A size has room for the nodes and jobs of all groups; `against` is the path of the nodes."""
    row = pcs.sizes[size]
    needed = pcs.size_for(nodes, jobs)
    largest = list(pcs.sizes.values())[-1]
    fix = f"Use {needed}, or leave it out."
    if nodes > largest.nodes or jobs > largest.jobs:
        fix = f"The largest has {largest.nodes} nodes and {largest.jobs} jobs: use two systems."
    if nodes > row.nodes:
        rule = f"has at most {row.nodes} nodes, the pools and the login node need {nodes}"
        yield Problem(path, size, rule, fix, against=against, code="pcs-size-too-small")
    if jobs > row.jobs:
        rule = f"has at most {row.jobs} jobs that run and wait, layout.max_jobs is {jobs}"
        yield Problem(path, size, rule, fix, against="layout.max_jobs", code="pcs-size-too-small")


def name_problems(path: str, kind: Literal["cluster", "group", "queue"], name: str) -> Iterator[Problem]:
    """The name of a cluster, group or queue."""
    most = _MOST_LETTERS[kind]
    if not _NAME.fullmatch(name) or not _FEWEST_LETTERS <= len(name) <= most:
        rule = f"AWS PCS needs {_FEWEST_LETTERS} to {most} letters, digits and dashes, a letter first"
        yield Problem(path, name, rule, "Choose another name.", code="pcs-name-invalid")
