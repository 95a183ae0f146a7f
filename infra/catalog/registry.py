"""The catalog of each cloud."""

from collections.abc import Mapping
from typing import Final

from infra.catalog import aws, gcp
from infra.catalog.catalog import Catalog

CATALOGS: Final[Mapping[str, Catalog]] = {"aws": aws.facts, "gcp": gcp.facts}
"""By the name of the cloud in a spec."""
