"""Tables of each cloud: queries, and the mapping of their answers."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from infra.discovery import modules
from policies.sources.live.mapping import LiveKind
from policies.sources.live.queries import ApiQuery

CLOUDS = ("aws", "gcp", "kubernetes")


@dataclass(frozen=True)
class CloudTables:
    """Tables of a cloud."""

    queries: Mapping[str, ApiQuery]
    """By name; a query follows the one whose items it needs."""
    kinds: tuple[LiveKind, ...]
    absent: frozenset[str]
    """Types that never exist there."""
    unreported: Mapping[str, str]
    """By prefix of a type: reason why the cloud does not report it."""


@functools.cache
def tables(cloud: str) -> CloudTables:
    """Tables of a cloud, from all modules of its package. Raises ModuleNotFoundError for another name."""
    queries: dict[str, ApiQuery] = {}
    kinds: list[LiveKind] = []
    absent: frozenset[str] = frozenset()
    unreported: dict[str, str] = {}
    for module in modules(f"policies.sources.live.{cloud}"):
        queries |= {one.name: one for one in getattr(module, "QUERIES", ())}
        kinds += getattr(module, "KINDS", ())
        absent |= getattr(module, "ABSENT", frozenset())
        unreported |= getattr(module, "UNREPORTED", {})
    return CloudTables(queries, tuple(kinds), absent, unreported)
