"""The values of emulated secrets, kept beside the resources: they are not in the state of a stack."""

import json
import uuid
from dataclasses import dataclass
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.state import State

# What was written through this store is {"versions": {id: {"value": str, "stages": [...]}}}; anything else
# was written by an emulated service that creates secrets: the value itself, as text or as JSON.
SPACE = "secret"
_SECRET = "aws:secretsmanager/secret:Secret"  # noqa: S105 - a resource type
_VERSION = "aws:secretsmanager/secretVersion:SecretVersion"
CURRENT, PREVIOUS = "AWSCURRENT", "AWSPREVIOUS"


class ConflictError(Exception):
    """A request token was already used with another value."""


@dataclass(frozen=True)
class Version:
    """One version of a secret."""

    id: str
    value: str
    stages: tuple[str, ...]


class SecretStore:
    """Finds secrets by ARN or name, reads and writes their versions."""

    def __init__(self, state: State) -> None:
        self._state = state

    def find(self, reference: str) -> tuple[str, Record | None] | None:
        """A secret's ARN and its resource (None for one that a service made); None when there is none."""
        for record in self._state.find(type=_SECRET):
            names = (record.outputs.get("arn"), record.outputs.get("name"), record.id)
            if reference in names:
                return str(record.outputs.get("arn") or record.id), record
        if self._state.document(SPACE, reference) is not None:
            return reference, None
        return None

    def versions(self, arn: str) -> list[Version]:
        """Every version, oldest first."""
        kept = self._state.document(SPACE, arn)
        if kept is not None and not (isinstance(kept, dict) and "versions" in kept):
            value = kept if isinstance(kept, str) else json.dumps(kept)
            return [Version(str(uuid.uuid5(uuid.NAMESPACE_URL, arn)), value, (CURRENT,))]
        if kept:
            rows = kept["versions"].items()
            return [Version(name, row["value"], tuple(row["stages"])) for name, row in rows]
        written = [
            r for r in self._state.find(type=_VERSION) if r.outputs.get("secretId") in (arn, _name(arn))
        ]
        return [
            Version(
                str(r.outputs.get("versionId") or r.id), str(r.outputs.get("secretString") or ""), (CURRENT,)
            )
            for r in written[-1:]
        ]

    def put(self, arn: str, value: str, token: str) -> Version:
        """Add a version named by its request token; a repeated request changes nothing."""
        with self._state.transaction():
            known = self.versions(arn)
            same = next((version for version in known if version.id == token), None)
            if same is not None:
                if same.value != value:
                    raise ConflictError(token)
                return same
            rows: dict[str, Any] = {}
            for version in known:
                stages = [PREVIOUS] if CURRENT in version.stages else []
                rows[version.id] = {"value": version.value, "stages": stages}
            rows[token] = {"value": value, "stages": [CURRENT]}
            self._state.put_document(SPACE, arn, {"versions": rows})
        return Version(token, value, (CURRENT,))


def _name(arn: str) -> str:
    """The name in a secret's ARN, without the six characters that the service adds."""
    return arn.rpartition(":secret:")[2][:-7]
