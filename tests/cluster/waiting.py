"""Waiting for a state of the cluster."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from rehearsal.controlplane.api import KubernetesApi, Object


def eventually(
    check: Callable[[], Any], what: str | Callable[[], object] = "it", patience_s: float = 60.0
) -> Any:
    """The first true result of `check`; fails with a description of the condition."""
    deadline = time.monotonic() + patience_s
    while not (found := check()):
        if time.monotonic() > deadline:
            said = what if isinstance(what, str) else what()
            raise AssertionError(f"did not happen in {patience_s:.0f} s: {said}")
        time.sleep(0.1)
    return found


def gone(api: KubernetesApi, bodies: Sequence[Object], patience_s: float = 60.0) -> None:
    """Wait until these objects, which were deleted, are not there any more.

    A deletion goes on after its answer: what is made again meanwhile is the old object, and goes with it.
    """
    left = [
        (body["apiVersion"], body["kind"], body["metadata"]["name"], body["metadata"].get("namespace", ""))
        for body in bodies
    ]
    eventually(lambda: all(api.find(*one) is None for one in left), f"{left} are gone", patience_s)


def counted(api: KubernetesApi, quota: Object) -> bool:
    """Whether a ResourceQuota is counted: until then it refuses everything that it counts."""
    metadata = quota["metadata"]
    found = api.get("v1", "ResourceQuota", metadata["name"], metadata["namespace"])
    return bool(found.get("status", {}).get("hard") == found["spec"]["hard"])
