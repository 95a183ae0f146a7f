"""Plain documents with placeholders for values known during the deployment (pure but for Outputs)."""

import re
from collections.abc import Mapping
from typing import Any

import pulumi

_SLOT = re.compile("\x02(.+?)\x03")


def slot(name: str) -> str:
    """A placeholder for the value `name`, alone or within a longer text."""
    return f"\x02{name}\x03"


def filled(body: Any, values: Mapping[str, pulumi.Input[str]]) -> Any:
    """`body` with `values` in its slots. KeyError for a slot without a value."""
    if isinstance(body, Mapping):
        return {key: filled(item, values) for key, item in body.items()}
    if isinstance(body, list | tuple):
        return [filled(item, values) for item in body]
    if not isinstance(body, str) or not _SLOT.search(body):
        return body
    parts = _SLOT.split(body)  # text, name, text, name, ..., text
    return pulumi.Output.concat(*(values[part] if at % 2 else part for at, part in enumerate(parts)))
