"""Artifact stores of tracking servers."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError, is_unknown
from policies.rules.kubernetes.pods import containers
from policies.rules.properties import each, raw
from policies.rules.storage.buckets import GCS, S3
from policies.rules.tracking.logins import SERVES, command
from policies.stack import Stack

_WORKLOADS = ("kubernetes:apps/v1:Deployment", "kubernetes:apps/v1:StatefulSet")
_OPTIONS = ("--artifacts-destination", "--default-artifact-root")
_VARIABLES = ("ARTIFACTS_DESTINATION", "ARTIFACT_ROOT")
# Scheme of clients for the destination of the server.
_PROXIED = "mlflow-artifacts:"


@CATALOG.rule_around(
    "MLS-TRK-03",
    "high",
    _WORKLOADS,
    "Models in the file system of a pod are lost with the pod; an unmanaged bucket may be deleted.",
    "Start the server with --artifacts-destination s3://BUCKET/PREFIX, with a bucket of the stack.",
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
            # mlflow 3.17.2, mlflow/cli/__init__.py: ./mlartifacts by default.
            yield Violation("artifacts are in the pod, and lost with it", path)
        elif not places:
            raise UndeterminedError(f"{path}: the artifact store of its program is not known")
        for place in places:
            yield from _judged(place, path, workload, stack)


def _is_named(container: Mapping[str, Any], words: tuple[str, ...]) -> bool:
    return any(word in str(container.get("name")).lower() for word in words)


def _places(container: Mapping[str, Any]) -> Iterator[Any]:
    """Artifact stores in its command and environment, also unknown ones."""
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
