"""Table rows of Google Cloud; `core.emulation.table` documents the columns.

The provider's source says what is replaced: a row's own `replace` is what is decided against it.
"""

from collections.abc import Container
from pathlib import Path
from typing import Any

from rehearsal.core.emulation.table import Row, Table

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


TABLE = Table(
    "gcp",
    Path(__file__).with_name("tables"),
    _generic,
    Path(__file__).with_name("provider") / "changes.json",
    _USUAL,
)
