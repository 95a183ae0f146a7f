"""What AWS refuses, service by service. Limits of single values are rows in `limits/*.toml`."""

from rehearsal.aws.rules.book import BOOK
from rehearsal.core.discovery import modules

__all__ = ["BOOK"]

# Importing a module of rules puts them into the book.
MODULES = tuple(modules(__name__))
