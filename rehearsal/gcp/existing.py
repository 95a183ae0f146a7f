"""Resources of a project that exist outside of the rehearsal's programs and may be referred to."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rehearsal.accounts import project_number
from rehearsal.core.emulation.shape import identifiers
from rehearsal.core.emulation.templates import expand
from rehearsal.core.model import Properties
from rehearsal.core.state import State
from rehearsal.gcp.site import PACKAGE
from rehearsal.gcp.table import TABLE

_PATH = re.compile(r"projects/(?P<project>[^/]+)/(?:(?:locations|regions|zones)/(?P<place>[^/]+)/)?")


def seed(state: State, resources: Iterable[Mapping[str, Any]]) -> list[str]:
    """Register existing resources; returns the ids of new ones.

    Each has its full `type`, its `id`, and optionally `outputs`, and the `project` where the id does not
    contain it. They belong to no program, so none deletes them.
    """
    with state.transaction():
        return [one["id"] for one in resources if _insert(state, one)]


def project_of(one: Mapping[str, Any]) -> str:
    """The project of a resource, empty when unknown."""
    found = _PATH.match(str(one["id"]))
    given = (one.get("outputs") or {}).get("project")
    return str(one.get("project") or given or (found and found["project"]) or "")


def is_placed(one: Mapping[str, Any]) -> bool:
    """Return whether the location of a resource is known: a project, or global."""
    return bool(project_of(one)) or TABLE.row(str(one["type"])).everywhere


def _insert(state: State, one: Mapping[str, Any]) -> bool:
    token, key, given = str(one["type"]), str(one["id"]), dict(one.get("outputs") or {})
    row, found, project = TABLE.row(token), _PATH.match(key), project_of(one)
    scope = "global" if row.everywhere else project
    if state.get(PACKAGE, token, scope, key):
        return False
    leaf = key.rpartition("/")[2]
    place = {row.place: found["place"]} if found and found["place"] and row.place else {}
    named = {row.name: leaf} if row.name else {}
    outputs: Properties = {**row.defaults, **named, **place, "project": project, **given}
    values = {"project": project, "number": project_number(project), "id": key, **outputs}
    for name, template in {**({"selfLink": row.link} if row.link else {}), **row.outputs}.items():
        outputs.setdefault(name, expand(template, key, values))
        values[name] = outputs[name]
    record = state.insert(
        package=PACKAGE,
        type=token,
        scope=scope,
        id=key,
        urn="",
        name=row.display_name(outputs),
        inputs={},
        outputs=outputs,
    )
    state.issue(record, identifiers(row, "selfLink", key, outputs))
    return True
