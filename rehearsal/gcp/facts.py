"""The catalog's facts about Google Cloud, fetched when first needed: the daemon starts without them."""

import functools
import importlib
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from infra.catalog.gcp.catalog import GcpCatalog

_LETTERS = ("a", "b", "c")


@functools.cache
def catalog() -> "GcpCatalog":
    """The catalog of Google Cloud that ships with the product."""
    return cast("GcpCatalog", importlib.import_module("infra.catalog.gcp").facts)


def zones(region: str) -> tuple[str, ...]:
    """The zones of a region; one that no source lists has a, b and c."""
    known = catalog().regions.get(region)
    return known.zones if known else tuple(f"{region}-{letter}" for letter in _LETTERS)
