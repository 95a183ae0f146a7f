"""Refusals by the columns of a row: names that are taken, unless a create is a PUT, and deletions."""

import time
from datetime import UTC, datetime

from rehearsal.core.emulation.columns import Kept
from rehearsal.core.emulation.site import OWNER, BaseSite
from rehearsal.core.emulation.table import Row
from rehearsal.core.model import UNKNOWN, Properties, Record, RefusalError
from rehearsal.core.properties import at

# Names that stay reserved after the deletion of their resource: document space; keys are from `_kept_key`.
_KEPT = "kept"
# Owners of an object that several stacks have: document space; keys are those of records.
_OWNERS = "owners"
_DAY_S = 86_400
# Code and message of rows without their own.
Usual = tuple[str, str]


def refuse_duplicate(
    site: BaseSite, row: Row, inputs: Properties, record: Record | None, usual: Usual
) -> None:
    """Refuse properties `row.unique` that another resource has; `record` is the resource of an update."""
    values = [at(inputs, name) for name in row.unique]
    if not row.unique or UNKNOWN in values or (site.preview and record is None):
        return  # in a preview, the update may delete the other resource first
    scope = None if row.everywhere else site.scope
    name = row.display_name(inputs) if row.name in row.unique else None
    for other in site.state.find(package=site.package, type=row.token, scope=scope, name=name):
        if record is not None and other.key == record.key:
            continue
        if [at(other.outputs, name) for name in row.unique] == values:
            raise _exists(site, row, {**inputs, "id": other.id}, row.exists or usual, _owner(other))


def store(  # noqa: PLR0917 - the columns of a record
    site: BaseSite, row: Row, id: str, inputs: Properties, outputs: Properties, usual: Usual
) -> Record:
    """Keep a new resource; where a create writes to what exists (`row.put`), both are one object.

    Raises RefusalError when another of the type has its id.
    """
    call, other = site.call, site.state.get(site.package, row.token, site.scope, id)
    if other is None:
        return site.state.insert(
            package=site.package,
            type=call.type,
            scope=site.scope,
            id=id,
            urn=call.urn,
            name=row.display_name(outputs),
            inputs=inputs,
            outputs=outputs,
        )
    if not row.put or (row.put_same and other.inputs != inputs):
        raise _exists(site, row, {**outputs, "id": id}, row.exists or usual, _owner(other))
    if row.stays is not None:
        owners = {*_owners(site, other), call.urn} - {""}
        site.state.put_document(_OWNERS, str(other.key), sorted(owners))
        return site.state.replace(other, inputs=inputs, outputs=outputs)
    both = f"it is the same object as {other.urn}" if other.urn not in ("", call.urn) else "it exists already"
    site.call.log(
        "warning",
        f"{row.token} {id}: {both}. {row.put}: the last one that is written counts, and the deletion of one "
        "deletes it for both.",
    )
    return site.state.replace(other, inputs=inputs, outputs=outputs)


def leave(site: BaseSite, row: Row, record: Record) -> bool:
    """Return whether a deletion leaves a resource to its other owners (`row.stays`), and forget this one."""
    if row.stays is None or any(record.inputs.get(name) is True for name in row.stays):
        return False
    others = _owners(site, record) - {site.call.urn}
    site.state.put_document(_OWNERS, str(record.key), sorted(others))
    return bool(others)


def _owners(site: BaseSite, record: Record) -> set[str]:
    """URNs of the resources of programs that are this object."""
    return {*(site.state.document(_OWNERS, str(record.key)) or (record.urn,))} - {""}


def refuse_kept(site: BaseSite, row: Row, id: str, outputs: Properties, usual: Usual) -> None:
    """Refuse a name that a deleted resource of the type still reserves, also in a preview."""
    kept = row.kept
    found = site.state.document(_KEPT, _kept_key(row, site.scope, id, outputs)) if kept else None
    if kept is None or found is None or (found["until"] is not None and found["until"] < time.time()):
        return
    last_day = "" if found["until"] is None else f"{datetime.fromtimestamp(found['until'], UTC):%Y-%m-%d}"
    why = kept.why.format(until=last_day)
    fix = f"It was deleted before, but {why}: use another name, or let Pulumi choose one."
    error = (kept.code, kept.message) if kept.code else row.exists or usual
    raise _exists(site, row, {**outputs, "id": id}, error, fix)


def refuse_protected(row: Row, record: Record) -> None:
    """Refuse to delete a resource that one of its properties protects."""
    if row.protected is None:
        return
    name, code, message = row.protected
    if record.outputs.get(name) in (True, "true"):
        fix = f"Set {name} to false and run up before destroy."
        raise RefusalError(code, f"{message.format(id=record.id, name=record.name)} (property {name})", fix)


def refuse_used(site: BaseSite, row: Row, record: Record) -> None:
    """Refuse to delete a resource that others use."""
    blocked = row.blocked
    if blocked is None:
        return
    users = [
        use
        for use in site.state.users(record)
        if use.path != OWNER and blocked.holds(use.user.type, use.path) and use.user.key != record.key
    ]
    if users:
        values = {"id": record.id, "name": record.name or record.id, "user": users[0].user.id}
        holders = dict.fromkeys(f"{_called(use.user)} ({use.path})" for use in users[:5])
        message = blocked.message.format(**values)
        raise RefusalError(blocked.code, message, f"Still used by {', '.join(holders)}.")


def keep_name(site: BaseSite, row: Row, record: Record) -> None:
    """Reserve a name that the service does not release, or not soon, after the deletion."""
    days = _days(row.kept, record.outputs) if row.kept else 0
    begun = site.state.unconfirmed(record.urn)
    unconfirmed = begun is not None and begun[0].key == record.key  # no engine knows the deleted resource
    if days != 0 and not unconfirmed:
        keep(site, row, record.id, record.outputs, days and time.time() + days * _DAY_S)


def keep(site: BaseSite, row: Row, id: str, outputs: Properties, until: float | None = None) -> None:
    """Reserve a name that no program has, until a time in seconds of the epoch or for ever."""
    site.state.put_document(_KEPT, _kept_key(row, site.scope, id, outputs), {"until": until})


def _days(kept: Kept, outputs: Properties) -> int | None:
    """Days for which a name stays reserved; None: for ever."""
    return int(outputs.get(kept.days) or 0) if isinstance(kept.days, str) else kept.days


def _exists(
    site: BaseSite, row: Row, properties: Properties, error: tuple[str, str], fix: str
) -> RefusalError:
    code, message = error
    name = row.display_name(properties) or properties["id"]
    values = {**properties, **site.template_values, "name": name, "type": row.token, "scope": site.scope}
    return RefusalError(code, message.format(**values), fix)


def _owner(other: Record) -> str:
    return f"It belongs to {other.urn}." if other.urn else ""


def _called(user: Record) -> str:
    """Name of a resource in messages; one that a service made by itself has no URN."""
    return user.urn or f"{user.name} {user.id}".strip()


def _kept_key(row: Row, scope: str, id: str, outputs: Properties) -> str:
    """Key of a reserved name, without random parts of the id."""
    unique = "|".join(str(at(outputs, name)) for name in row.unique)
    return f"{row.token}|{scope}|{unique or id}"
