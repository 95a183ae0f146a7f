"""Read configuration and waiver files: small YAML files; one fault rejects the whole file."""

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from infra import conflict_markers
from infra.errors import Problem, UserError

_MOST_BYTES = 1 << 20


def load(path: Path, keys: frozenset[str], fix: str) -> dict[str, Any]:
    """The object in a file with these keys only. Raises UserError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _error(path, f"cannot be read: {error.strerror}", fix, "audit-file-unreadable") from None
    if len(content) > _MOST_BYTES:
        raise _error(path, f"is larger than {_MOST_BYTES >> 20} MiB", fix, "audit-file-too-large")
    try:
        found = YAML(typ="safe", pure=True).load(content.decode())
    except (YAMLError, ValueError, RecursionError) as error:
        if marked := conflict_markers.problem(str(path), content.decode(errors="replace")):
            raise UserError([marked]) from None
        raise _error(
            path, f"is not valid YAML: {' '.join(str(error).split())}", fix, "audit-file-invalid-yaml"
        ) from None
    if not isinstance(found, dict) or not keys >= found.keys():
        raise _error(
            path,
            f"must be an object with {' and '.join(sorted(keys))}, nothing else",
            fix,
            "audit-file-unknown-keys",
        )
    return found


def faults(path: Path, key: str, error: Any, fix: str) -> UserError:
    """A pydantic ValidationError of the value of `key` as UserError, with a problem per fault."""
    return UserError(
        Problem(
            f"{path}: {key}{''.join(map(_step, fault['loc']))}",
            None if fault["type"] == "missing" else fault["input"],
            fault["msg"].lower(),
            fix,
            code="audit-file-invalid-value",
        )
        for fault in error.errors()
    )


def _step(part: int | str) -> str:
    return f"[{part}]" if isinstance(part, int) else f".{part}"


def _error(path: Path, rule: str, fix: str, code: str) -> UserError:
    return UserError([Problem(str(path), None, rule, fix, code=code)])
