"""Deploy-time validation of distributed training: measure, decide, attribute, record.

Self-contained: the standard library and torch, nothing else of this repository, because the package reaches
a cluster as one zip. `instrument` is for users' own training loops.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smoke_training.instrumentation import instrument as instrument


def __getattr__(name: str) -> object:
    """Import `instrument` on first access: it needs torch, most of this package does not."""
    if name != "instrument":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from smoke_training.instrumentation import instrument  # noqa: PLC0415 - see above

    return instrument
