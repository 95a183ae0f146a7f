"""The rules, a folder per group; a new file needs no registration."""

from infra.discovery import modules
from policies.catalog import CATALOG

__all__ = ["CATALOG"]

# The import of a module registers its rules in the catalog.
MODULES = tuple(modules(__name__))
