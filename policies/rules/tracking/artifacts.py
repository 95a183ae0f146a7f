"""Where a tracking server keeps what it is given."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from policies.catalogue import CATALOGUE, About, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError, is_unknown
from policies.rules.kubernetes.pods import containers
from policies.rules.storage.buckets import GCS, S3
from policies.rules.tracking.logins import SERVES, command
from policies.rules.walking import each, raw
from policies.stack import Stack

_WORKLOADS = ("kubernetes:apps/v1:Deployment", "kubernetes:apps/v1:StatefulSet")
_OPTIONS = ("--artifacts-destination", "--default-artifact-root")
_VARIABLES = ("ARTIFACTS_DESTINATION", "ARTIFACT_ROOT")
# The clients' word for whatever destination the server has.
_PROXIED = "mlflow-artifacts:"


@CATALOGUE.rule_around(
    About(
        "MLS-TRK-03",
        "high",
        _WORKLOADS,
        "Models in the file system of a pod are gone with the pod; in a bucket that nobody manages, with"
        " whoever made it.",
        "Start the server with --artifacts-destination s3://BUCKET/PREFIX, of a bucket in the stack.",
    )
)
def artifacts_are_in_a_bucket_of_the_stack(workload: Resource, stack: Stack) -> Iterator[Violation]:
    """Tracking servers keep artifacts in a bucket that the stack manages."""
    servers = [
        (path, one, bool(SERVES.search(command(one))))
        for path, one, _ in containers(workload)
        if SERVES.search(command(one)) or _is_named(one, stack.settings.tracking_words)
    ]
    if not servers:
        raise NotApplicableError("it starts no tracking server")
    for path, container, is_plain in servers:
        places = list(_places(container))
        if not places and is_plain:
            # mlflow 3.17.2, mlflow/cli/__init__.py: ./mlartifacts where nothing is said.
            yield Violation("artifacts are in the pod, and gone with it", path)
        elif not places:
            raise UndeterminedError(f"{path}: where its program keeps artifacts")
        for place in places:
            yield from _judged(place, path, workload, stack)


def _is_named(container: Mapping[str, Any], words: tuple[str, ...]) -> bool:
    return any(word in str(container.get("name")).lower() for word in words)


def _places(container: Mapping[str, Any]) -> Iterator[Any]:
    """Every place that its command or its environment names, also if unknown."""
    words = command(container).replace("=", " ").split()
    for option, value in itertools.pairwise(words):
        if option in _OPTIONS and not value.startswith(_PROXIED):
            yield value
    for _, entry in each(container, "env"):
        if str(entry.get("name")).endswith(_VARIABLES):
            value = raw(entry, "value")
            if is_unknown(value) or (value and not value.startswith(_PROXIED)):
                yield value


def _judged(place: Any, path: str, workload: Resource, stack: Stack) -> Iterator[Violation]:
    if is_unknown(place):
        sources = workload.references.get("spec", ())
        if any(f"{kind}::" in urn for urn in sources for kind in (*S3, GCS)):
            return
    scheme, _, rest = str(place).partition("://")
    if scheme not in ("s3", "gs"):
        yield Violation(f"artifacts are in {place}, which is no bucket", path)
    elif stack.referred(workload, rest.partition("/")[0], "spec", *S3, GCS) is None:
        yield Violation(f"the stack does not manage the bucket of {place}", path)
