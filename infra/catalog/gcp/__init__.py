"""Google Cloud: machines, networks, zones, versions, what its services accept. `facts` is the way in."""

from pathlib import Path
from typing import Final

from infra.catalog.gcp.catalog import GcpCatalog

facts: Final = GcpCatalog(Path(__file__).parent / "tables")
"""The tables that ship with the product; each is read when it is first asked for."""
