"""StatefulSets."""

from collections.abc import Iterator

from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules.accessors import absent, at, whole
from rehearsal.kubernetes.rules.book import BOOK, STATEFUL_SET
from rehearsal.kubernetes.rules.violations import NEGATIVE, invalid

_SOURCE = "kubernetes/kubernetes v1.36.2 pkg/apis/apps/validation/validation.go (ValidateStatefulSetSpec)"
_ROLLING = "spec.updateStrategy.rollingUpdate"
_COUNTS = ("spec.ordinals.start", f"{_ROLLING}.partition")


@BOOK.rule("K8S-STS-001", STATEFUL_SET, source=_SOURCE)
def _rolling(inputs: Properties) -> Iterator[Violation]:
    """Settings of rolling updates need that strategy."""
    rolling = at(inputs, _ROLLING)
    if at(inputs, "spec.updateStrategy.type") == "OnDelete" and not absent(rolling):
        yield invalid(_ROLLING, rolling, "only allowed for updateStrategy 'RollingUpdate'")


@BOOK.rule("K8S-STS-002", STATEFUL_SET, source=_SOURCE)
def _counts(inputs: Properties) -> Iterator[Violation]:
    """The first ordinal and the partition are not negative."""
    for path in _COUNTS:
        number = whole(at(inputs, path))
        if number is not None and number < 0:
            yield invalid(path, number, NEGATIVE)
