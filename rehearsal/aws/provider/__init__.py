"""Facts of the AWS provider, which is asked by its protocol.

`changes.json`: what a change of each type does (`core.emulation.changes`). `values.json`, by
`tools/aws_limits/ask.py`: the values that it accepts (`core.rules.facts`) and limits across properties
(`core.rules.cross_fields`), one line for each type.
"""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VALUES = Path(__file__).with_name("values.json")


@functools.cache
def lines() -> Mapping[str, str]:
    """The JSON of the facts of each type, such as `sqs/queue:Queue`; a type is parsed on first use."""
    rows = (line.partition('": ') for line in VALUES.read_text(encoding="utf-8").splitlines()[1:-1])
    return {name.removeprefix('"'): facts.removesuffix(",") for name, _, facts in rows}


@functools.cache
def facts(token: str) -> Mapping[str, Any]:
    """The facts of a type, with its name in Terraform's provider as `terraform`."""
    found: Mapping[str, Any] = json.loads(lines()[token])
    return found


def source() -> str:
    """The provider, its version, and the sources of newer values."""
    with VALUES.open(encoding="utf-8") as file:
        head = json.loads(file.readline().rstrip().rpartition(', "types"')[0] + "}")
    return f"{head['source']} {head['commit']} ({head['date']})"
