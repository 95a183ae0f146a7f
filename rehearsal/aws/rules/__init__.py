"""Rules of AWS by service. Limits of single values are rows in `limits/*.toml`."""

from infra.discovery import modules
from rehearsal.aws.rules.book import BOOK

__all__ = ["BOOK"]

# Importing a module adds its rules to the book.
MODULES = tuple(modules(__name__))
