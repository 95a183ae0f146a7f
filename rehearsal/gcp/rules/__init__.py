"""What Google Cloud refuses, service by service. Limits of single values are rows in `limits/*.toml`."""

from infra.discovery import modules
from rehearsal.gcp.rules.book import BOOK

__all__ = ["BOOK"]

# Importing a module of rules puts them into the book.
MODULES = tuple(modules(__name__))
