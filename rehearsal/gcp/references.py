"""References between resources by property values, and whether their targets exist."""

import re
from collections.abc import Iterator

from rehearsal.accounts import project_number
from rehearsal.core.emulation.site import refuse
from rehearsal.core.emulation.table import Row
from rehearsal.core.model import Properties, Record, RefusalError
from rehearsal.core.properties import walk, without_indices
from rehearsal.gcp.site import MISSING, Site
from rehearsal.gcp.table import TABLE

_FOLDER = "gcp:storage/managedFolder:ManagedFolder"
_ACCOUNT = "gcp:serviceaccount/account:Account"
_EMAIL = re.compile(r"(?:serviceAccount:)?([a-z][-a-z0-9]*)@([-a-z0-9.:]+)\.iam\.gserviceaccount\.com")
_WORKLOAD = re.compile(r"serviceAccount:([-a-z0-9.:]+\.svc\.id\.goog)\[")
_PROJECT = re.compile(r"projects/([^/]+)/")


def resolve(site: Site, line: Row, inputs: Properties) -> dict[str, Record]:
    """Property path -> referenced resource. Raises RefusalError for the first that does not exist.

    A preview ignores missing ones: they may be created in the same update.
    """
    found: dict[str, Record] = {}
    for path, value, target in _named(line, inputs):
        record = site.find(value, target.removeprefix("gcp:"))
        if record is not None:
            found[path] = record
        elif not site.preview and _is_ours(site, value, target):
            raise _missing(site, target, path, value)
    return found


def _named(line: Row, inputs: Properties) -> Iterator[tuple[str, str, str]]:
    for path, value in walk(inputs):
        target = line.refs.get(without_indices(path))
        if target is not None and isinstance(value, str) and value:
            # The name of a managed folder is unique within its bucket.
            yield path, f"{inputs.get('bucket')}/{value}" if target == _FOLDER else value, target


def _is_ours(site: Site, value: str, target: str) -> bool:
    """Return whether a missing `value` would be in this project: resources of others are unknown here."""
    if target == _ACCOUNT:
        if "/" not in value and "@" not in value:
            return value not in ("default", "allUsers", "allAuthenticatedUsers") and ":" not in value
        pool = _WORKLOAD.match(value)
        if pool:
            return _no_pool(site, pool.group(1))
        email = _EMAIL.fullmatch(value.rpartition("/")[2])
        return email is not None and email.group(2) == site.project
    owner = _PROJECT.match(site.path(value))
    if owner:
        return owner.group(1) in (site.project, project_number(site.project), "-")
    return value.rpartition("/")[2] not in TABLE.row(target).default_names


def _no_pool(site: Site, pool: str) -> bool:
    """Error for a workload identity pool: Google creates it with a project's first cluster that uses it."""
    if pool != f"{site.project}.svc.id.goog":
        return False
    clusters = site.all("container/cluster:Cluster")
    return not any(
        (one.outputs.get("workloadIdentityConfig") or {}).get("workloadPool") == pool
        or one.outputs.get("enableAutopilot")
        for one in clusters
    )


def _missing(site: Site, target: str, path: str, value: str) -> RefusalError:
    pool = _WORKLOAD.match(value)
    if pool:
        return refuse(
            "badRequest",
            f"Identity Pool does not exist ({pool.group(1)}). Please check that you specified a valid "
            "resource name as returned in the `name` attribute in the configuration API.",
            path,
            "Create a cluster with this workload pool first and let the binding depend on it.",
        )
    code, message = TABLE.rows[target].missing or MISSING
    kind = target.rpartition(":")[2]
    elsewhere = [
        record for record in site.state.find(package="gcp", type=target, name=value) if record.name == value
    ]
    fix = (
        f"It exists as {elsewhere[0].id}, but this resource is in {_where(site)}."
        if elsewhere
        else f"Use an output of the {kind} that the program creates, or look one up."
    )
    return refuse(code, message.format(value=value.removeprefix("serviceAccount:")), path, fix)


def _where(site: Site) -> str:
    places = [str(value) for value in site.located.values() if isinstance(value, str) and value]
    return ", ".join((f"project {site.project}", *dict.fromkeys(places)))
