"""The versions of emulated secrets, kept beside the resources: they are not in the state of a stack."""

import base64
import re
from dataclasses import dataclass, replace

from rehearsal.accounts import project_number
from rehearsal.core.model import Record
from rehearsal.core.state import State

# Document space of this store: id of the secret -> [{"data": base64, "state": str}], oldest first.
SPACE = "google-secret"
ENABLED = "ENABLED"
_SECRET = "gcp:secretmanager/secret:Secret"  # noqa: S105 - a resource type
_VERSION = "gcp:secretmanager/secretVersion:SecretVersion"
_NAME = re.compile(r"projects/([^/]+)/secrets/([^/]+)")


@dataclass(frozen=True)
class Version:
    """One version of a secret; `data` is base64, as the API carries it."""

    number: int
    data: str
    state: str = ENABLED


class GoogleSecrets:
    """Finds secrets by resource name, reads and adds their versions."""

    def __init__(self, state: State) -> None:
        self._state = state

    def find(self, name: str) -> Record | None:
        """The secret with a name such as `projects/P/secrets/S`; P is an id or a number."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        for record in self._state.find(type=_SECRET):
            project = str(record.outputs.get("project") or record.scope)
            if record.outputs.get("secretId") == found[2] and found[1] in (project, project_number(project)):
                return record
        return None

    def versions(self, secret: Record) -> list[Version]:
        """Every version, oldest first: those of programs, then those of pods."""
        given = [
            Version(int(one.outputs["version"]), _encoded(one))
            for one in self._state.find(type=_VERSION)
            if str(one.outputs.get("name")).startswith(f"{secret.outputs.get('name')}/versions/")
        ]
        first = max((one.number for one in given), default=0) + 1
        rows = self._state.document(SPACE, secret.id) or []
        added = [Version(index, row["data"], row["state"]) for index, row in enumerate(rows, start=first)]
        return [*given, *added]

    def version(self, secret: Record, wanted: str) -> Version | None:
        """A version by its number, or the `latest`."""
        known = self.versions(secret)
        if wanted == "latest":
            return known[-1] if known else None
        return next((one for one in known if str(one.number) == wanted), None)

    def add(self, secret: Record, data: str) -> Version:
        """Add a version."""
        with self._state.transaction():
            known = self.versions(secret)
            made = Version(len(known) + 1, data)
            rows = self._state.document(SPACE, secret.id) or []
            self._state.put_document(SPACE, secret.id, [*rows, {"data": data, "state": ENABLED}])
        return made

    def set_state(self, secret: Record, version: Version, state: str) -> Version:
        """Enable, disable or destroy a version; a destroyed version has no data."""
        changed = replace(version, state=state, data="" if state == "DESTROYED" else version.data)
        with self._state.transaction():
            rows = self._state.document(SPACE, secret.id) or []
            place = version.number - 1 - (len(self.versions(secret)) - len(rows))
            if place >= 0:  # a version of a program keeps the state that the program sets
                rows[place] = {"data": changed.data, "state": state}
                self._state.put_document(SPACE, secret.id, rows)
        return changed


def _encoded(version: Record) -> str:
    text = str(version.outputs.get("secretData") or "")
    already = version.outputs.get("isSecretDataBase64") in (True, "true")
    return text if already else base64.b64encode(text.encode()).decode()
