"""Table rows of Google Cloud; `core.emulation.table` documents the columns.

The provider's source says what is replaced: a row's own `replace` is what is decided against it.
"""

import re
from collections.abc import Container
from dataclasses import replace
from pathlib import Path
from typing import Any

from rehearsal.core.emulation.table import Row, Table

_IS_MEMBER = re.compile(r"I(AM|am)Member$")
_MEMBER = ("{holder} {role} {member} {condition.title}", "{holder} {role} {member}")
_MISFORMED = (
    "Wrong number of parts to Member id [{value}]; expected 'resource_name role member [condition_title]'."
)
# Default columns of every type.
_USUAL: dict[str, Any] = {"name": "name", "name_length": 63, "name_lower": True}


def _generic(token: str, properties: Container[str]) -> Row:
    place = next((name for name in ("zone", "location", "region") if name in properties), "")
    kind = token.rpartition(":")[2]
    parent = f"projects/{{project}}/{place}s/{{{place}}}" if place else "projects/{project}/global"
    leaf = "{name}" if "name" in properties else "{hex16}"
    return Row(
        token=token,
        id=f"{parent}/{kind[0].lower()}{kind[1:]}s/{leaf}",
        link="https://www.googleapis.com/compute/v1/{id}" if token.startswith("gcp:compute/") else "",
        place=place,
        replace=("name", "project", "region", "location", "zone"),
        known=False,
        **_USUAL,
    )


class _Table(Table):
    """Adds how members of roles are imported, whatever has the role.

    Source: hashicorp/terraform-provider-google google/tpgiamresource/resource_iam_member.go, iamMemberImport.
    """

    def row(self, token: str, properties: Container[str] = ()) -> Row:
        """See `Table`."""
        row = super().row(token, properties)
        return replace(row, imported=_MEMBER, misformed=_MISFORMED) if _IS_MEMBER.search(token) else row


TABLE = _Table(
    "gcp",
    Path(__file__).with_name("tables"),
    _generic,
    Path(__file__).with_name("provider") / "changes.json",
    _USUAL,
)
