"""What Google Cloud would refuse: `BOOK` holds every rule."""

from infra.rehearsal.rules.gcp import accounts, clusters, fabrics, networks, pools, storage, values
from infra.rehearsal.rules.gcp.book import BOOK

__all__ = ["BOOK", "accounts", "clusters", "fabrics", "networks", "pools", "storage", "values"]
