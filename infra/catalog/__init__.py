"""Dated facts about clouds: machines, networks, prices, regions, quotas. `catalog.aws()` is the way in.

Facts live in TOML tables beside the code, each row with its source and day. What no source says is
absent (None), never guessed and never 0. Nothing is read from disk before it is asked for.
"""

from functools import cache
from pathlib import Path

from infra.catalog.catalog import EVERY_REGION, AwsCatalog
from infra.catalog.eks import Eks
from infra.catalog.errors import UnknownFactError
from infra.catalog.lustre import LustreTable
from infra.catalog.model import (
    Accelerator,
    CapacityType,
    Duration,
    EfaInterface,
    EksAddon,
    Fact,
    InstanceType,
    KubernetesVersion,
    LustreThroughput,
    Price,
    Quota,
    Region,
    ServicePrice,
)
from infra.catalog.tables import CatalogError

__all__ = [
    "EVERY_REGION",
    "Accelerator",
    "AwsCatalog",
    "CapacityType",
    "CatalogError",
    "Duration",
    "EfaInterface",
    "Eks",
    "EksAddon",
    "Fact",
    "InstanceType",
    "KubernetesVersion",
    "LustreTable",
    "LustreThroughput",
    "Price",
    "Quota",
    "Region",
    "ServicePrice",
    "UnknownFactError",
    "aws",
]


@cache
def aws() -> AwsCatalog:
    """The AWS catalogue that ships with the product; one instance per process."""
    return AwsCatalog(Path(__file__).parent / "aws")
