"""What a Kubernetes API server, and Kueue in it, refuse."""

from infra.discovery import modules
from rehearsal.kubernetes.rules.book import BOOK, alone, around

__all__ = ["BOOK", "alone", "around"]

# Importing a module of rules puts them into the book.
MODULES = tuple(modules(__name__))
