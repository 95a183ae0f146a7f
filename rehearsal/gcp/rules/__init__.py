"""What Google Cloud would refuse: `BOOK` holds every rule."""

from rehearsal.gcp.rules import accounts, clusters, fabrics, networks, pools, storage, values
from rehearsal.gcp.rules.book import BOOK

__all__ = ["BOOK", "accounts", "clusters", "fabrics", "networks", "pools", "storage", "values"]
