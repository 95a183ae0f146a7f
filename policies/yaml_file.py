"""Reads what people write for an audit: small YAML files, refused whole where anything is wrong with them."""

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from infra.errors import Problem, UserError

_MOST_BYTES = 1 << 20


def load(path: Path, keys: frozenset[str], fix: str) -> dict[str, Any]:
    """The object in a file, which has no other keys than these. Raises UserError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}", fix) from None
    if len(content) > _MOST_BYTES:
        raise _refused(path, f"is larger than {_MOST_BYTES >> 20} MiB", fix)
    try:
        found = YAML(typ="safe", pure=True).load(content.decode())
    except (YAMLError, ValueError, RecursionError) as error:
        raise _refused(path, f"is not valid YAML: {' '.join(str(error).split())}", fix) from None
    if not isinstance(found, dict) or not keys >= found.keys():
        raise _refused(path, f"must be an object with {' and '.join(sorted(keys))}, nothing else", fix)
    return found


def faults(path: Path, key: str, error: Any, fix: str) -> UserError:
    """What pydantic's ValidationError says of the value of `key`, with a problem for each fault."""
    return UserError(
        Problem(
            f"{path}: {key}{''.join(map(_step, fault['loc']))}",
            None if fault["type"] == "missing" else fault["input"],
            fault["msg"].lower(),
            fix,
        )
        for fault in error.errors()
    )


def _step(part: int | str) -> str:
    return f"[{part}]" if isinstance(part, int) else f".{part}"


def _refused(path: Path, rule: str, fix: str) -> UserError:
    return UserError([Problem(str(path), None, rule, fix)])
