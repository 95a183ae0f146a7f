"""Validation rules of a Kubernetes API server and of Kueue."""

from infra.discovery import modules
from rehearsal.kubernetes.rules.book import BOOK, alone, around

__all__ = ["BOOK", "alone", "around"]

# Importing a module registers its rules.
MODULES = tuple(modules(__name__))
