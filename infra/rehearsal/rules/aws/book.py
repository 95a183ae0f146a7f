"""The book itself, apart from its pages so that they can be imported in any order."""

from infra.rehearsal.aws.site import Site
from infra.rehearsal.rules.model import Book

BOOK: Book[Site] = Book("AWS")
