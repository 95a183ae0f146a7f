"""The rows of AWS; `core.emulation.table` explains the columns."""

from collections.abc import Container
from pathlib import Path

from rehearsal.core.emulation.table import Row, Table


def _generic(token: str, properties: Container[str]) -> Row:
    service, _, kind = token.removeprefix("aws:").partition("/")
    kind, named = kind.partition(":")[0], "name" in properties
    leaf = "{name}" if named else "{id}"
    return Row(
        token=token,
        id="{name}-{hex8}" if named else f"{kind.lower()}-{{hex17}}",
        link=f"arn:aws:{service}:{{region}}:{{account}}:{kind}/{leaf}",
        name="name" if named else "",
        replace=("name", "namePrefix", "availabilityZone"),
        known=False,
    )


TABLE = Table("aws", Path(__file__).with_name("tables"), _generic)
