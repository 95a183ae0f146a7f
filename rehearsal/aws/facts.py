"""Facts of the AWS catalog, loaded on first use: the daemon starts without them."""

import functools
import importlib
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from infra.catalog.aws.catalog import AwsCatalog

# The role that deploys exists before any program does; it is the caller of every rehearsal.
DEPLOYER_ROLE = "platform"
# Every account has at least these zones in a region the catalog does not list.
_LETTERS = "abc"


@functools.cache
def catalog() -> "AwsCatalog":
    """The AWS catalog that ships with the product."""
    return cast("AwsCatalog", importlib.import_module("infra.catalog.aws").facts)


def zones(region: str) -> tuple[str, ...]:
    """The names of a region's zones."""
    known = catalog().regions.get(region)
    return tuple(known.zones) if known else tuple(f"{region}{letter}" for letter in _LETTERS)


def zone_id(region: str, zone: str) -> str:
    """The id of a zone such as `use1-az1`; in this account, names and ids run in the same order."""
    names = zones(region)
    known = catalog().regions.get(region)
    if known and len(known.zone_ids) == len(names) and zone in names:
        return known.zone_ids[names.index(zone)]
    parts = region.split("-")
    direction = "".join(part[0] for part in parts[1:-1])
    return f"{parts[0]}{direction}{parts[-1]}-az{ord(zone[-1]) - ord('a') + 1}"
