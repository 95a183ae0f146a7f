"""Where a request of the Google cloud takes place, and the functions a service may add to its types."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rehearsal.core.model import UNKNOWN, Call, Properties, RefusalError
from rehearsal.core.state import Record, State

PACKAGE = "gcp"
_HOST = re.compile(r"https?://[^/]+/(?:(?:compute|storage|sql)/)?(?:v\d\w*/)?|//[^/]+/")
_PLACES = ("region", "zone", "location")


@dataclass(frozen=True)
class Site:
    """One request: state, project and places of the resource it is about."""

    state: State
    project: str
    places: Properties
    call: Call
    preview: bool = False

    def find(self, value: object, token: str) -> Record | None:
        """The resource of a type (without `gcp:`) under a self link, an id, an email or a name, or None.

        A name is looked up in this project, and in the place of this request where the type has one.
        """
        if not isinstance(value, str):
            return None
        for form in (value, self.path(value)):
            for record in self.state.issued(form):
                if record.type == f"gcp:{token}":
                    return record
        if "/" in value:
            return None
        named = self.state.find(package=PACKAGE, type=f"gcp:{token}", scope=self.project, name=value)
        near = [record for record in named if self._near(record)]
        return near[0] if near else None

    def path(self, value: str) -> str:
        """A link as the path that ids have: from `projects/` on."""
        plain = _HOST.sub("", value, count=1) if _HOST.match(value) else value
        if re.match(r"(global|regions|zones|locations)/", plain):
            plain = f"projects/{self.project}/{plain}"
        return plain

    def _near(self, record: Record) -> bool:
        for name in _PLACES:
            theirs, mine = record.outputs.get(name), self.places.get(name)
            if theirs and isinstance(mine, str) and theirs != mine:
                return False
        return True

    def all(self, token: str) -> Iterator[Record]:
        """The resources of a type (without `gcp:`) in this project, oldest first."""
        return iter(self.state.find(package=PACKAGE, type=f"gcp:{token}", scope=self.project))

    def others(self, token: str) -> Iterator[Record]:
        """Like `all`, without the resource of this request."""
        return (record for record in self.all(token) if record.urn != self.call.urn)


@dataclass(frozen=True)
class Hooks:
    """What a row cannot say about a type.

    `outputs` adds computed outputs, given site, seed, inputs and outputs so far; `updated` says what an
    update makes of them, given the record and the new inputs; `deleting` may refuse, and cleans up.
    """

    outputs: Callable[[Site, str, Properties, Properties], Properties] | None = None
    updated: Callable[[Site, Record, Properties], Properties] | None = None
    deleting: Callable[[Site, Record], None] | None = None


def known(value: object) -> bool:
    """Whether a value is set and a preview knows it."""
    return value is not None and value is not UNKNOWN


def refuse(code: str, message: str, path: str, fix: str = "") -> RefusalError:
    """A refusal that names the property at fault."""
    return RefusalError(code, f"{message} (property {path})" if path else message, fix)
