"""What a service refuses by the columns of a row: names that are taken, and deletions."""

from rehearsal.core.emulation.site import OWNER, Site
from rehearsal.core.emulation.table import Row
from rehearsal.core.model import UNKNOWN, Properties, Record, RefusalError
from rehearsal.core.properties import at

# Names that are not free although their resource is deleted: document space; keys are made by `_kept_key`.
_KEPT = "kept-names"


def refuse_duplicate(
    site: Site, row: Row, inputs: Properties, record: Record | None, usual: tuple[str, str]
) -> None:
    """Refuse the properties `row.unique` that another resource has; `record` is what an update changes."""
    values = [at(inputs, name) for name in row.unique]
    if not row.unique or UNKNOWN in values or (site.preview and record is None):
        return  # a preview cannot tell what an update deletes before this is created
    scope = None if row.everywhere else site.scope
    name = row.display_name(inputs) if row.name in row.unique else None
    for other in site.state.find(package=site.package, type=row.token, scope=scope, name=name):
        if record is not None and other.key == record.key:
            continue
        if [at(other.outputs, name) for name in row.unique] == values:
            raise _exists(site, row, {**inputs, "id": other.id}, usual, _owner(other))


def refuse_taken(site: Site, row: Row, id: str, outputs: Properties, usual: tuple[str, str]) -> None:
    """Refuse an id that another resource of the type has, or had where it is not given again."""
    other = site.state.get(site.package, row.token, site.scope, id)
    if other is not None:
        raise _exists(site, row, {**outputs, "id": id}, usual, _owner(other))
    kept = site.state.document(_KEPT, _kept_key(row, site.scope, id))
    if kept is not None:
        fix = f"It was deleted before, but {kept}: use another name, or let Pulumi choose one."
        raise _exists(site, row, {**outputs, "id": id}, usual, fix)


def refuse_protected(row: Row, record: Record) -> None:
    """Refuse to delete what a property of its own protects."""
    if row.protected is None:
        return
    name, code, message = row.protected
    if record.outputs.get(name) in (True, "true"):
        fix = f"Set {name} to false and run up before destroy."
        raise RefusalError(code, f"{message.format(id=record.id, name=record.name)} (property {name})", fix)


def refuse_used(site: Site, row: Row, record: Record) -> None:
    """Refuse to delete what others use."""
    blocked = row.blocked
    if blocked is None:
        return
    users = [
        use
        for use in site.state.users(record)
        if use.path != OWNER and blocked.holds(use.user.type, use.path) and use.user.key != record.key
    ]
    if users:
        words = {"id": record.id, "name": record.name or record.id, "user": users[0].user.id}
        holders = dict.fromkeys(f"{_called(use.user)} ({use.path})" for use in users[:5])
        message = blocked.message.format(**words)
        raise RefusalError(blocked.code, message, f"Still used by {', '.join(holders)}.")


def keep_name(site: Site, row: Row, record: Record) -> None:
    """Remember a name that the service does not give again after the deletion."""
    if row.kept:
        site.state.put_document(_KEPT, _kept_key(row, record.scope, record.id), row.kept)


def _exists(site: Site, row: Row, properties: Properties, usual: tuple[str, str], fix: str) -> RefusalError:
    code, message = row.exists or usual
    name = row.display_name(properties) or properties["id"]
    words = {**properties, **site.words, "name": name, "type": row.token, "scope": site.scope}
    return RefusalError(code, message.format(**words), fix)


def _owner(other: Record) -> str:
    return f"It belongs to {other.urn}." if other.urn else ""


def _called(user: Record) -> str:
    """What a message calls a resource; one that a service made by itself has no URN."""
    return user.urn or f"{user.name} {user.id}".strip()


def _kept_key(row: Row, scope: str, id: str) -> str:
    return f"{row.token}|{scope}|{id}"
