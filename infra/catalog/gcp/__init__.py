"""Google Cloud: machines, networks, zones, versions, limits of its services. Entry point: `facts`."""

from pathlib import Path
from typing import Final

from infra.catalog.gcp.catalog import GcpCatalog

facts: Final = GcpCatalog(Path(__file__).parent / "tables")
"""The tables that ship with the product; each is read on first use."""
