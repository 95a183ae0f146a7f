"""The baseline that was looked up before judging, so that a run can be judged again from its samples."""

from collections.abc import Mapping
from dataclasses import dataclass

from smoke_training.evidence.registry import Record, kind


@kind("baseline")
@dataclass(frozen=True, kw_only=True)
class Lookup(Record):
    """A baseline document and where it was found, or None with the reason."""

    document: Mapping[str, object] | None
    source: str
    reason: str | None
