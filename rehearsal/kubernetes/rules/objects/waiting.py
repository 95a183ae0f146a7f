"""Annotations by which a program changes what the provider waits for."""

from collections.abc import Iterator

from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.awaiter.wait_for import WAIT_FOR, conditions_of
from rehearsal.kubernetes.rules.book import ANY, BOOK
from rehearsal.kubernetes.rules.reading import at, mapping, text
from rehearsal.kubernetes.rules.words import invalid


@BOOK.rule("K8S-WAIT-001", ANY, source="pulumi/pulumi-kubernetes provider/pkg/metadata/overrides.go")
def _readable(inputs: Properties) -> Iterator[Violation]:
    """The provider can read what it is to wait for; it looks only when the object is there already."""
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
