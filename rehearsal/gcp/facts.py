"""Catalog facts of Google Cloud, imported on first use so that the daemon starts faster."""

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


def region_of(location: str) -> str:
    """The region of a region or zone."""
    return location if location.count("-") == 1 else location.rpartition("-")[0]


def zones(region: str) -> tuple[str, ...]:
    """The zones of a region; a, b and c for a region without a source."""
    known = catalog().regions.get(region)
    return known.zones if known else tuple(f"{region}-{letter}" for letter in _LETTERS)
