"""A whole training stack, as its owner wants it."""

from typing import Annotated, Literal

from pydantic import Field

from infra.spec.compute import ClusterSpec, PoolSpec
from infra.spec.model import Email, Model, Name
from infra.spec.network import NetworkSpec
from infra.spec.smoke import SmokeSpec
from infra.spec.storage import StorageSpec
from infra.spec.teams import BudgetSpec, TeamSpec
from infra.spec.tracking import TrackingSpec


class StackSpec(Model):
    """Everything a deployment needs to know; values only, no cloud objects."""

    name: Name
    """Name of the Pulumi stack, and the start of every name in it."""

    cloud: Literal["aws"]
    """Where the stack lives."""

    profile: Literal["medium"]
    """Size of the team it is made for; `medium` is 5 to 20 people on one shared cluster (R28)."""

    region: str
    """Region of the cloud, such as `us-east-1`."""

    owner: Email
    """Who answers for the stack; a tag on every resource."""

    cost_center: Annotated[str, Field(min_length=1, max_length=64)]
    """Who pays; a tag on every resource."""

    tags: dict[str, str] = Field(default_factory=dict)
    """Further tags for every resource."""

    network: NetworkSpec
    cluster: ClusterSpec
    pools: Annotated[tuple[PoolSpec, ...], Field(min_length=1)]
    """GPU node pools."""

    storage: StorageSpec
    tracking: TrackingSpec
    teams: Annotated[tuple[TeamSpec, ...], Field(min_length=1)]
    """Teams that share the stack."""

    budget: BudgetSpec
    smoke: SmokeSpec
