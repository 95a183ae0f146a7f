"""ComputeClasses of GKE (cloud.google.com/v1); their fields are in gke_schemas.json."""

from collections.abc import Iterator

from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules.accessors import name
from rehearsal.kubernetes.rules.book import BOOK
from rehearsal.kubernetes.rules.violations import invalid

COMPUTE_CLASS = "kubernetes:cloud.google.com/v1:ComputeClass"


@BOOK.rule(
    "K8S-GKE-004", COMPUTE_CLASS, source="GKE documentation, About custom ComputeClasses (limitations)"
)
def _named(inputs: Properties) -> Iterator[Violation]:
    """Names of GKE's own classes are not taken."""
    own = name(inputs)
    if own and own.startswith(("gke", "autopilot")):
        yield invalid("metadata.name", own, "must not begin with gke or autopilot")
