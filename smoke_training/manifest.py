"""State manifests: one SHA-256 per entry, what differs, which checkpoint to resume from (pure)."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

Manifest = Mapping[str, str]


def entry_digest(kind: str, shape: Sequence[int], raw: bytes) -> str:
    """SHA-256 of an entry's type, shape and raw bytes, so that equal bytes of another shape are not equal."""
    head = f"{kind}|{','.join(map(str, shape))}|".encode()
    return hashlib.sha256(head + raw).hexdigest()


def differences(expected: Manifest, found: Manifest) -> list[str]:
    """Names whose digests differ or that only one side has; empty means 100 % equal, nothing skipped."""
    return sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one rank found of its part of one step; `fault` is None when it proved complete."""

    rank: int
    step: int
    path: str
    fault: str | None
    readable: bool = True


@dataclass(frozen=True, kw_only=True)
class Choice:
    """From which step to resume, and what is wrong with newer ones."""

    step: int | None  # the newest that proves complete on all ranks; None if there is none
    committed: int | None  # the newest that all ranks had once completed
    damaged: tuple[Part, ...]  # parts of committed steps that prove complete no more
    unreadable: tuple[Part, ...]  # parts of any step that the operating system does not let us read


def choose(parts: Iterable[Part], committed: Collection[int], ranks: int) -> Choice:
    """Resolve what all ranks found. A step counts only if every one of `ranks` ranks brings a proven part."""
    known = list(parts)
    whole: dict[int, set[int]] = {}
    for part in known:
        if part.fault is None:
            whole.setdefault(part.step, set()).add(part.rank)
    complete = [step for step, owners in whole.items() if len(owners) == ranks]
    broken = [part for part in known if part.fault is not None]
    order = sorted(broken, key=lambda part: (-part.step, part.rank))
    return Choice(
        step=max(complete, default=None),
        committed=max([*committed, *complete], default=None),
        damaged=tuple(part for part in order if part.readable and part.step in committed),
        unreadable=tuple(part for part in order if not part.readable),
    )
