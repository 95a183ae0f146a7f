"""The book itself, apart from its pages so that they can be imported in any order."""

from rehearsal.aws.site import Site
from rehearsal.core.rules.model import Book

BOOK: Book[Site] = Book("AWS")
