"""References in property values to other resources, and checks that these exist."""

import functools
import re
from collections.abc import Iterator

from rehearsal.aws.facts import DEPLOYER_ROLE
from rehearsal.aws.peers import connecting, other_scope
from rehearsal.aws.service_keys import is_service_key
from rehearsal.aws.site import MISSING, SEEDED, Site
from rehearsal.aws.table import TABLE
from rehearsal.core.emulation.site import refuse
from rehearsal.core.emulation.table import Row
from rehearsal.core.model import Properties, Record, RefusalError
from rehearsal.core.properties import at, head, walk

_ID = re.compile(r"([a-z]+)-[0-9a-f]{8}(?:[0-9a-f]{9})?")
# Free text of the user, never a reference.
_IGNORED = frozenset({"tags", "tagsAll", "description", "userData", "__defaults"})
# Resources that every account has, or AWS creates on demand.
_PRESENT = re.compile(
    rf"arn:aws:iam::(?:aws:policy/|\d{{12}}:role/(?:aws-service-role/|aws-reserved/|{DEPLOYER_ROLE}$))"
)


def resolve(site: Site, row: Row, inputs: Properties) -> dict[str, Record]:
    """Property path -> resource it refers to. Raises RefusalError for the first that does not exist.

    In a preview, names are not checked: the resource may be created by the same update.
    """
    found: dict[str, Record] = {}
    for path, value in walk(inputs):
        if not isinstance(value, str) or head(path) in _IGNORED:
            continue
        there = other_scope(site, row.token, inputs, path)
        record = _of_peer(site, there, path, value) if there else _by_form(site, path, value)
        if record is not None:
            found[path] = record
    for path, value, target in _named(row, inputs):
        record = site.find(value, target.removeprefix("aws:")) or connecting(site, value)
        if record is not None:
            found[path] = record
        elif not site.preview and not value.startswith(row.default_names or ("\0",)):
            raise _missing(site, target, path, value)
    return found


def _named(row: Row, inputs: Properties) -> Iterator[tuple[str, str, str]]:
    for path, target in row.refs.items():
        value = at(inputs, path)
        if isinstance(value, str) and not value.startswith("arn:"):
            yield path, value, target


def _of_peer(site: Site, scope: str, path: str, value: str) -> Record | None:
    """The other side of a peering. Another account may be none of this rehearsal: unknown here."""
    record = next((one for one in site.state.issued(value) if one.scope == scope), None)
    types = _by_prefix().get(value.partition("-")[0])
    if record is None and types and scope.startswith(f"{site.account}/"):
        raise _missing(site, f"aws:{types[0]}", path, value)
    return record


def _by_form(site: Site, path: str, value: str) -> Record | None:
    match = _ID.fullmatch(value)
    if match:
        types = _by_prefix().get(match.group(1), ())
        if not types:
            return None
        record = site.find(value, *types) or connecting(site, value)
        if record is None:
            raise _missing(site, f"aws:{types[0]}", path, value)
        return record
    if not value.startswith("arn:") or _PRESENT.match(value):
        return None
    return _by_arn(site, path, value)


def _by_arn(site: Site, path: str, value: str) -> Record | None:
    plain = re.sub(r"(:\*|/\*)$", "", value)
    for record in site.state.issued(plain):
        if record.package == "aws":
            return record
    if is_service_key(site, plain):
        return None
    parts = plain.split(":", 5)
    if len(parts) < 6 or parts[4] not in ("", site.account) or "*" in plain:
        return None  # another account's, or a pattern: unknown here
    for pattern, target in _by_pattern():
        if pattern.fullmatch(plain) and not (site.preview and target.id in ("{name}", "{arn}")):
            raise _missing(site, target.token, path, value)
    return None


def _missing(site: Site, target: str, path: str, value: str) -> RefusalError:
    code, message = TABLE.rows[target].missing or MISSING
    others = [record.scope for record in site.state.issued(value) if record.package == "aws"]
    kind = target.rpartition(":")[2]
    fix = (
        f"It exists in {others[0]}, but this resource is in {site.scope}."
        if others
        else f"Use an output of the {kind} that the program creates, or look one up. {SEEDED}"
    )
    return refuse(code, message.format(value=value), path, fix)


@functools.cache
def _by_prefix() -> dict[str, tuple[str, ...]]:
    """Prefix of an id -> types (without `aws:`) with such ids."""
    found: dict[str, list[str]] = {}
    for row in TABLE.rows.values():
        match = re.match(r"([a-z]+)-\{hex17\}", row.id)
        if match and row.missing is not None:
            found.setdefault(match.group(1), []).append(row.token.removeprefix("aws:"))
    for row in TABLE.rows.values():
        for name in row.issues:
            match = re.match(r"([a-z]+)-\{hex17:", str(row.outputs[name]))
            if match and match.group(1) in found:
                found[match.group(1)].append(row.token.removeprefix("aws:"))
    return {prefix: tuple(tokens) for prefix, tokens in found.items()}


@functools.cache
def _by_pattern() -> tuple[tuple[re.Pattern[str], Row], ...]:
    """Patterns of the ARNs of every type whose absence has a known error."""
    return tuple(
        (re.compile(_pattern(row.link)), row)
        for row in TABLE.rows.values()
        if row.link and row.missing is not None
    )


def _pattern(template: str) -> str:
    parts = re.split(r"(\{[^{}]+\})", template)
    forms = {"{account}": r"\d{12}", "{region}": r"[a-z0-9-]+", "{path}": r"/(?:[^:]*/)?"}
    return "".join(forms.get(part, "[^/:]+") if part.startswith("{") else re.escape(part) for part in parts)
