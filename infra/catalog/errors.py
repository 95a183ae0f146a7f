"""What the catalog says when it is asked for something it has no row for."""

import difflib
from collections.abc import Iterable


class UnknownFactError(LookupError):
    """No row has this key; the message lists the nearest ones."""

    def __init__(self, kind: str, key: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(key, names, n=5, cutoff=0.4) or names[:5]
        self.kind, self.key, self.nearest = kind, key, tuple(near)
        super().__init__(f"no {kind} {key!r} in the catalog; nearest: {', '.join(near)}")
