"""Annotations that change what the provider waits for."""

from collections.abc import Iterator

from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.awaiter.wait_for import WAIT_FOR, conditions_of
from rehearsal.kubernetes.rules.accessors import at, mapping, text
from rehearsal.kubernetes.rules.book import ANY, BOOK
from rehearsal.kubernetes.rules.violations import invalid


@BOOK.rule("K8S-WAIT-001", ANY, source="pulumi/pulumi-kubernetes provider/pkg/metadata/overrides.go")
def _readable(inputs: Properties) -> Iterator[Violation]:
    """The wait annotations are valid; the provider checks them only after it created the object."""
    given = text(mapping(at(inputs, "metadata.annotations")).get(WAIT_FOR))
    try:
        if given:
            conditions_of(given)
    except ValueError as error:
        fix = (
            "The provider says so after it made the object, which is then in the cluster, not in its state. "
            "A path of RFC 9535 with more than names, indexes, `*` and comparisons cannot be rehearsed."
        )
        yield invalid(f'metadata.annotations["{WAIT_FOR}"]', given, str(error), fix)
