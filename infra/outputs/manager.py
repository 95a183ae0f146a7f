"""Outputs of the manager of several clusters: one versioned record and a plain key."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from infra.outputs import cluster as outputs
from infra.outputs.cluster import TeamOutputs

SCHEMA = "trainstack.manager-outputs/1"
PLAIN_KEYS = ("kubeconfig",)


class ManagerOutputs(BaseModel):
    """Data about the manager; data of jobs and their validation is in the outputs of the clusters."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal["trainstack.manager-outputs/1"] = "trainstack.manager-outputs/1"
    stack: str
    cloud: str
    region: str
    profile: str
    owner: str
    cost_center: str
    cluster_name: str
    kubeconfig: str
    clusters: dict[str, str]
    """Stack of each cluster that runs jobs, by its name."""
    connected: tuple[str, ...]
    """Clusters that the manager logs in to: all after a deployment of all, but those that are open to ranges
    of the internet."""

    @property
    def away(self) -> tuple[str, ...]:
        """Clusters that get no jobs."""
        return tuple(name for name in self.clusters if name not in self.connected)

    pools: tuple[str, ...]
    """Pools of all clusters, by their full names."""
    teams: tuple[TeamOutputs, ...]
    budget: str
    """Name of the budget of all stacks, which mails its alarms."""


def is_of_manager(exported: Mapping[str, Any]) -> bool:
    """Return whether stack outputs are those of a manager."""
    return outputs.has_schema(exported, SCHEMA)


def export(fields: Mapping[str, Any]) -> None:
    """Export the record made of `fields` (plain values or outputs) and the plain key."""
    outputs.export(fields, ManagerOutputs, PLAIN_KEYS)


def parse(exported: Mapping[str, Any]) -> ManagerOutputs:
    """Read the record back from stack outputs. Raises KeyError before the first complete deployment."""
    return ManagerOutputs.model_validate(exported[outputs.KEY])
