"""Facts of the AWS provider, which is asked by its protocol, and of the requests that it sends.

`changes.json`: what a change of each type does (`core.emulation.changes`). `values.json`, by
`tools/aws_limits/ask.py`: the values that it accepts (`core.rules.facts`) and limits across properties
(`core.rules.cross_fields`), one line for each type. `requests.json`, by `tools/aws_limits/requests.py`: the
limits that the service's model has for the request that creates a type, beside those of the provider.
"""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VALUES, REQUESTS = (Path(__file__).with_name(name) for name in ("values.json", "requests.json"))


@functools.cache
def lines(file: Path = VALUES) -> Mapping[str, str]:
    """The JSON of the facts of each type, such as `sqs/queue:Queue`; a type is parsed on first use."""
    rows = (line.partition('": ') for line in file.read_text(encoding="utf-8").splitlines()[1:-1])
    return {name.removeprefix('"'): facts.removesuffix(",") for name, _, facts in rows}


@functools.cache
def facts(token: str, file: Path = VALUES) -> Mapping[str, Any]:
    """The facts of a type, with its name in Terraform's provider as `terraform`, or its `operation`."""
    found: Mapping[str, Any] = json.loads(lines(file)[token])
    return found


def source(file: Path = VALUES) -> str:
    """The provider and its version, or botocore's, and the sources of newer values."""
    with file.open(encoding="utf-8") as opened:
        head = json.loads(opened.readline().rstrip().rpartition(', "types"')[0] + "}")
    return " ".join(one for one in (head["source"], head.get("commit"), f"({head['date']})") if one)
