"""AWS: machines, networks, prices, regions, quotas, and what its services accept. `facts` is the way in."""

from pathlib import Path
from typing import Final

from infra.catalog.aws.catalog import AwsCatalog

facts: Final = AwsCatalog(Path(__file__).parent / "tables")
"""The tables that ship with the product; each is read when it is first asked for."""
