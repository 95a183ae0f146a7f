"""Ids by which providers import resources, where they differ from those in a state (`imported` of a row)."""

import re
from collections.abc import Mapping
from typing import Any

from rehearsal.core.emulation.site import BaseSite
from rehearsal.core.emulation.table import Row
from rehearsal.core.emulation.templates import WORD, expand, placeholders_of
from rehearsal.core.model import Record, RefusalError
from rehearsal.core.properties import at


def import_ids(row: Row, id: str, properties: Mapping[str, Any]) -> list[str]:
    """Ids by which the provider imports a resource, the one to write first; that of the state without others.

    `properties`: inputs and outputs. `{holder}` in a template is what has a member of a role.
    """
    member = f"/{properties.get('role')}/{properties.get('member')}"
    values = {**properties, "id": id, "holder": id.partition(member)[0]}
    whole = (one for one in row.imported if all(at(values, name) for name in placeholders_of(one)))
    return [expand(one, "", values) for one in whole] or [id]


def imported(site: BaseSite, row: Row, id: str) -> Record | None:
    """The resource that a program imports, or None.

    Raises RefusalError for an id that the provider cannot take apart.
    """
    found = [
        (record.scope != site.scope, ids.index(id), record.key, record)
        for record in site.state.find(package=site.package, type=row.token)
        if record.scope == site.scope or site.reaches(record)
        if id in (ids := import_ids(row, record.id, record.outputs))
    ]
    if found:
        return min(found)[3]
    if row.misformed and not any(re.fullmatch(_pattern(one), id) for one in row.imported):
        raise RefusalError("InvalidImportId", row.misformed.format(value=id))
    return None


def _pattern(template: str) -> str:
    """A template as a pattern: its parts have none of the characters that separate them."""
    separators = "".join(WORD.split(template)[::2])
    part = f"[^{re.escape(separators)}]+" if separators else ".+"
    return part.join(map(re.escape, WORD.split(template)[::2]))
