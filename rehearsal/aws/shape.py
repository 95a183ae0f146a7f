"""What a resource shows to the engine and to others."""

import re
from collections.abc import Mapping
from typing import Any

from rehearsal.aws.table import Row
from rehearsal.core.model import UNKNOWN, Properties, RefusalError
from rehearsal.core.properties import at, decoded
from rehearsal.core.schema import ResourceSchema

# The account that a rehearsal is in; a provider that assumes a role of another account is in that one.
ACCOUNT = "123456789012"
# What a program learns only once the resource exists, whatever its type.
_ALWAYS_COMPUTED = ("arn", "tagsAll", "region")


def account_of(config: Mapping[str, Any]) -> str:
    """The account of a provider: that of the role it assumes, else the one the rehearsal is in."""
    roles = decoded(config.get("assumeRoles"))
    if isinstance(roles, list) and roles and isinstance(roles[-1], dict):
        role = roles[-1].get("roleArn") or roles[-1].get("role_arn")  # a dict literal keeps Python's spelling
        match = re.match(r"arn:[a-z-]+:iam::(\d{12}):", str(role))
        if match:
            return match.group(1)
    return ACCOUNT


def identifiers(line: Row, id: str, outputs: Properties) -> set[str]:
    """The values by which others may refer to a resource."""
    values = [id, outputs.get("arn"), at(outputs, line.name) if line.name else None]
    values += [outputs.get(name) for name in line.issues]
    return {value for value in values if isinstance(value, str) and value}


def preview_of(
    line: Row, inputs: Properties, outputs: Properties, schema: ResourceSchema | None
) -> Properties:
    """The outputs with everything unknown that only the service decides."""
    settled = {**line.defaults, **inputs}
    names = {*outputs, *_ALWAYS_COMPUTED} & set(schema.outputs if schema else outputs)
    shown = {name: _foreseen(settled.get(name, UNKNOWN), outputs.get(name)) for name in names}
    if "tagsAll" in outputs:
        shown["tagsAll"] = outputs["tagsAll"]
    if "region" in outputs:
        shown["region"] = outputs["region"]
    return shown


def _foreseen(given: Any, computed: Any) -> Any:
    """What is given, and unknown for what the service adds inside of it."""
    if isinstance(given, dict) and isinstance(computed, dict):
        return {
            **given,
            **{
                name: _foreseen(given[name], value) if name in given else UNKNOWN
                for name, value in computed.items()
            },
        }
    if isinstance(given, list) and isinstance(computed, list) and len(given) == len(computed):
        return [_foreseen(*pair) for pair in zip(given, computed, strict=True)]
    return given


def tags_changed(now: dict[str, Any], before: Any) -> tuple[str, ...]:
    """The one path that a change of the provider's default tags changes, or none."""
    return () if now == (before or {}) else ("tagsAll",)


def is_told(path: str) -> bool:
    """Whether a difference at `path` is the program's: the SDKs add properties of their own."""
    return not path.startswith(("__defaults", "__internal"))


def gone(line: Row, id: str) -> RefusalError:
    """The refusal to change what no longer exists."""
    code, message = line.missing or ("ResourceNotFoundException", "{value} does not exist")
    return RefusalError(code, message.format(value=id), "Run `pulumi refresh` to drop it from the state.")
