"""Names of objects: made up as the provider does, and checked as the API server does."""

import hashlib
import re
import secrets
from typing import Any

from infra.rehearsal.kubernetes.diffs import AUTONAMED, annotations
from infra.rehearsal.kubernetes.kinds import Kind
from infra.rehearsal.model import UNKNOWN, Properties

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
# Kinds whose names become DNS labels: at most 63 characters, no dots.
_LABEL_KINDS = frozenset({"Namespace", "Service"})
# Kinds whose names may hold almost anything that fits into a path.
_PATH_KINDS = frozenset({"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"})


def unique_suffix(seed: bytes, length: int) -> str:
    """`length` hex digits; the same for the same seed, random without one."""
    return hashlib.sha256(seed).hexdigest()[:length] if seed else secrets.token_hex(length)[:length]


def assign_name(logical: str, seed: bytes, old: Properties | None, new: Properties) -> Properties:
    """`new` with a name: its own, the one made up before, or a fresh one marked as made up."""
    metadata = new.get("metadata")
    if metadata is UNKNOWN:
        return new
    metadata = dict(metadata or {})
    if metadata.get("name") or metadata.get("name") is UNKNOWN or metadata.get("generateName"):
        return new
    was = (old or {}).get("metadata") or {}
    if annotations(old or {}).get(AUTONAMED) == "true":
        metadata["name"] = was["name"]
    elif old:
        return new
    else:
        metadata["name"] = f"{logical}-{unique_suffix(seed, 8)}"
    kept = metadata.get("annotations")
    metadata["annotations"] = {**(kept if isinstance(kept, dict) else {}), AUTONAMED: "true"}
    return {**new, "metadata": metadata}


def problem(kind: Kind, name: Any) -> str | None:
    """Why the API server would refuse this name, or None."""
    if not isinstance(name, str) or kind.kind in _PATH_KINDS:
        return None
    if kind.kind == "Service" and not kind.group:
        if len(name) > 63 or not _SERVICE.fullmatch(name):
            return (
                f'Invalid value: "{name}": a DNS-1035 label must consist of at most 63 lower case '
                "alphanumeric characters or '-', start with a letter, and end with an alphanumeric character"
            )
        return None
    if kind.kind in _LABEL_KINDS and (len(name) > 63 or not _LABEL.fullmatch(name)):
        return (
            f'Invalid value: "{name}": a lowercase RFC 1123 label must consist of at most 63 lower case '
            "alphanumeric characters or '-', and must start and end with an alphanumeric character"
        )
    if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
        return (
            f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of at most 253 lower case '
            "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
        )
    return None


def label_problems(labels: Any) -> list[str]:
    """What is wrong with label keys and values."""
    found = []
    for key, value in (labels if isinstance(labels, dict) else {}).items():
        prefix, _, name = str(key).rpartition("/")
        if len(name) > 63 or not re.fullmatch(r"([A-Za-z0-9][-\w.]*)?[A-Za-z0-9]", name):
            found.append(f'Invalid value: "{key}": the name of a label key has at most 63 characters')
        if prefix and not _SUBDOMAIN.fullmatch(prefix):
            found.append(f'Invalid value: "{key}": the prefix of a label key must be a DNS subdomain')
        if isinstance(value, str) and (
            len(value) > 63 or not re.fullmatch(r"(([A-Za-z0-9][-\w.]*)?[A-Za-z0-9])?", value)
        ):
            found.append(
                f'Invalid value: "{value}": a valid label must be an empty string or consist of at most 63 '
                "alphanumeric characters, '-', '_' or '.', and start and end with an alphanumeric character"
            )
    return found
