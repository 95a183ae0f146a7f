"""Google Cloud's validation rules by service. Limits of single values are rows in `limits/*.toml`."""

from infra.discovery import modules
from rehearsal.gcp.rules.book import BOOK

__all__ = ["BOOK"]

# Importing a module registers its rules.
MODULES = tuple(modules(__name__))
