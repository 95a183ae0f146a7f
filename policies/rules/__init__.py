"""The rules, a folder for each group, a file for each concept; a new file needs no entry in a list."""

from infra.discovery import modules
from policies.catalogue import CATALOGUE

__all__ = ["CATALOGUE"]

# Importing a module of rules puts them into the catalogue.
MODULES = tuple(modules(__name__))
