"""Quotas that a stack exceeds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Short:
    """A quota that is too small."""

    key: str
    message: str
    """The error message of the cloud."""
    amounts: str
    """The required amount, and the parts of the stack that require it."""
    fix: str
    """The command that requests more."""

    def __str__(self) -> str:
        return self.amounts
