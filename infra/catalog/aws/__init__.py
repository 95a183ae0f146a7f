"""AWS: machines, networks, prices, regions, quotas, and limits of its services. Entry point: `facts`."""

from pathlib import Path
from typing import Final

from infra.catalog.aws.catalog import AwsCatalog

facts: Final = AwsCatalog(Path(__file__).parent / "tables")
"""The tables that ship with the product; each is read on first use."""
