"""Project and locations of a request to the emulated Google Cloud."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rehearsal.accounts import project_number
from rehearsal.core.emulation import site
from rehearsal.core.model import Call, Properties, Record
from rehearsal.core.state import State
from rehearsal.dataplane.gcp import iam_bindings
from rehearsal.gcp import iam_delay
from rehearsal.gcp.table import TABLE

PACKAGE = "gcp"
MISSING = ("notFound", "The resource '{value}' was not found")
_HOST = re.compile(r"https?://[^/]+/(?:(?:compute|storage|sql)/)?(?:v\d\w*/)?|//[^/]+/")
_LOCATED = re.compile(r"projects/[^/]+/(locations|regions|zones)/([^/]+)/")


@dataclass(frozen=True, kw_only=True)
class Site(site.BaseSite):
    """One request: project and locations of its resource."""

    package: ClassVar[str] = PACKAGE
    project: str
    located: Properties
    """Region, zone and location, where known."""

    @property
    def number(self) -> str:
        """The number of the project."""
        return project_number(self.project)

    @property
    def template_values(self) -> Mapping[str, str]:
        """See `core.emulation.site`."""
        return {"project": self.project, "number": self.number}

    @property
    def places(self) -> Properties:
        """See `core.emulation.site`."""
        return {**self.located, "project": self.project}

    def find(self, value: object, *types: str) -> Record | None:
        """The resource with a self link, id, email or name, or None.

        A name is looked up in this project, and in the location of this request where the type has one.
        """
        if not isinstance(value, str):
            return None
        wanted = {f"{PACKAGE}:{token}" for token in types}
        for form in (value, self.path(value)):
            for record in self.state.issued(form):
                if record.type in wanted:
                    return record
        if "/" in value:
            return None
        named = (
            record
            for token in wanted
            for record in self.state.find(package=PACKAGE, type=token, scope=self.project, name=value)
        )
        return next((record for record in named if self._near(record)), None)

    def allows(self, member: str, permission: str, name: str) -> bool:
        """Return whether the project's own bindings give a member a permission on a resource of that name."""
        return iam_bindings.allowed_by_project(self.state, {member}, permission, self.project, name)

    def effective(self, one: Record | str) -> bool:
        """Return whether an agent (an address), a grant or an instance is as old as its first use needs."""
        return iam_delay.effective(self.state, one if isinstance(one, str) else str(one.key))

    def path(self, value: str) -> str:
        """A link as the path of an id: from `projects/` on."""
        plain = _HOST.sub("", value, count=1) if _HOST.match(value) else value
        if re.match(r"(global|regions|zones|locations)/", plain):
            plain = f"projects/{self.project}/{plain}"
        return plain

    def _near(self, record: Record) -> bool:
        for name, mine in self.located.items():
            theirs = record.outputs.get(name)
            if theirs and isinstance(mine, str) and theirs != mine:
                return False
        return True


def site_of(state: State, call: Call, given: Properties, *, preview: bool = False) -> Site:
    """The site of a request with the properties `given`."""
    config = call.instance.config
    project = project_of(config, given)
    scope = "global" if TABLE.row(call.type).everywhere else project
    return Site(state, scope, call, preview, project=project, located=places_of(config, given))


def project_of(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> str:
    """The project of a resource, empty when neither it nor the provider sets one."""
    for value in (inputs.get("project"), config.get("project")):
        if isinstance(value, str) and value:
            return value.removeprefix("projects/")
    return ""


def places_of(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> Properties:
    """Region, zone and location of a resource, where known."""
    zone = _text(inputs.get("zone")) or _text(config.get("zone"))
    region = _text(inputs.get("region")) or _text(config.get("region"))
    if not region and zone:
        region = zone.rpartition("-")[0]
    location = _text(inputs.get("location"))
    cluster = _LOCATED.search(_text(inputs.get("cluster")))
    if not location and cluster:
        location = cluster.group(2)
    if not location:  # the provider's own order, in its regional_utils.go
        location = _text(config.get("region")) or zone
    found = {"region": region, "zone": zone, "location": location}
    return {name: value.rpartition("/")[2] for name, value in found.items() if value}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
