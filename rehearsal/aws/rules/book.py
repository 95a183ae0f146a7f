"""The book of AWS rules, and the access of rules to other resources."""

from typing import Protocol

from rehearsal.core.rules import model
from rehearsal.core.rules.model import Book


class AwsContext(model.RuleContext, Protocol):
    """Access of a rule to resources of the account and region."""

    @property
    def account(self) -> str:
        """The number of the account."""

    @property
    def region(self) -> str:
        """The region of the request; a resource may still be global."""


BOOK: Book[AwsContext] = Book("AWS")
