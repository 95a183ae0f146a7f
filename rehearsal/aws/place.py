"""Where a function of the provider is called, and what it finds there."""

from collections.abc import Iterable
from dataclasses import dataclass

from rehearsal.aws.site import PACKAGE
from rehearsal.aws.table import rows
from rehearsal.core.model import RefusalError
from rehearsal.core.state import Record, State


@dataclass(frozen=True)
class Place:
    """One account and region."""

    state: State
    account: str
    region: str

    def records(self, token: str) -> Iterable[Record]:
        """The resources of a type (without `aws:`) of this account and region, or global."""
        scopes = (f"{self.account}/{self.region}", f"{self.account}/global")
        return (
            one
            for scope in scopes
            for one in self.state.find(package=PACKAGE, type=f"aws:{token}", scope=scope)
        )

    def known_as(self, token: str, value: object) -> Record:
        """The resource of that type under an id, name or ARN. Raises RefusalError when there is none."""
        for record in self.records(token):
            if value in (record.id, record.name, record.outputs.get("arn"), record.outputs.get("name")):
                return record
        raise missing(token, value)


def missing(token: str, value: object) -> RefusalError:
    """The refusal to show what does not exist."""
    row = rows().get(f"aws:{token}")
    code, message = (row.missing if row else None) or (
        "ResourceNotFoundException",
        f"no {token.rpartition(':')[2]} matches {{value}}.",
    )
    fix = "Create it in the program, or in a stack before."
    return RefusalError(code, message.format(value=value), fix)
