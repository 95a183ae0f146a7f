"""State manifests: one SHA-256 per entry, and what differs between two of them (pure)."""

import hashlib
from collections.abc import Mapping, Sequence

Manifest = Mapping[str, str]


def entry_digest(kind: str, shape: Sequence[int], raw: bytes) -> str:
    """SHA-256 of an entry's type, shape and raw bytes, so that equal bytes of another shape are not equal."""
    head = f"{kind}|{','.join(map(str, shape))}|".encode()
    return hashlib.sha256(head + raw).hexdigest()


def differences(expected: Manifest, found: Manifest) -> list[str]:
    """Names whose digests differ or that only one side has; empty means 100 % equal, nothing skipped."""
    return sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))


def newest_common(complete: Sequence[Sequence[int]]) -> int | None:
    """The newest step of which every rank holds a complete checkpoint; None if there is none."""
    if not complete:
        return None
    common = set(complete[0]).intersection(*complete[1:])
    return max(common, default=None)
