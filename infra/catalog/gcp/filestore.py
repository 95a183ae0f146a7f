"""Sizes of Filestore shares."""

from collections.abc import Iterator
from typing import Final

from infra.catalog.errors import UnknownFactError
from infra.catalog.gcp import facts
from infra.catalog.gcp.model import bands_in_words, nearest_in_bands
from infra.errors import Problem

HOMES: Final = "REGIONAL"
"""Tier of homes."""


def size_problems(path: str, capacity_gib: int, tier_path: str, tier: str) -> Iterator[Problem]:
    """A capacity in GiB is one that the tier, such as `ZONAL`, offers."""
    row = facts.filestore_tiers.get(tier)
    if row is None:
        near = UnknownFactError("Filestore tier", tier, facts.filestore_tiers).nearest
        rule, fix = "unknown tier", f"Near it are {', '.join(near)}."
        yield Problem(tier_path, tier, rule, fix, code="unknown-filestore-tier")
    elif row.problem(capacity_gib):
        rule = f"not a size of {tier}: {bands_in_words(row.bands)} GiB"
        choice = " or ".join(map(str, nearest_in_bands(capacity_gib, row.bands)))
        fix = f"Set {choice}."
        yield Problem(path, capacity_gib, rule, fix, against=tier_path, code="filestore-size-not-offered")
