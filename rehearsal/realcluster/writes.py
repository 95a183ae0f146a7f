"""The provider's writes to an API server: creates, server-side applies and deletions, also as dry runs.

Source: pulumi/pulumi-kubernetes, provider/pkg/await/await.go, provider/pkg/provider/provider.go.
"""

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager

import requests

from rehearsal.controlplane.api import ApiError, KubernetesApi, Object, UnknownKindError
from rehearsal.core.model import UNKNOWN, Call, Properties, RefusalError
from rehearsal.core.properties import walk
from rehearsal.kubernetes.awaiter.wait_for import skipped
from rehearsal.kubernetes.kinds import ObjectKind, is_patch, parse

MANAGER = "pulumi-kubernetes"
_DELETE_S = 600.0
_POLL_S = 0.2
# Kinds whose deletion is not awaited with `skipAwait` (metadata/overrides.go: allowsSkipAwaitWithDelete).
_UNAWAITED = {"Namespace", "Pod", "ReplicationController", "DaemonSet", "Deployment", "StatefulSet", "Job"}
SERVER_SET = ("uid", "resourceVersion", "creationTimestamp", "generation")


@contextmanager
def refusals() -> Iterator[None]:
    """Convert errors of an API server to those that the engine shows."""
    try:
        yield
    except ApiError as error:
        raise RefusalError(error.reason or str(error.code), str(error)) from error
    except UnknownKindError as error:
        fix = "Verify that any required CRDs have been created."
        raise RefusalError(
            "NoMatch", f"{error}; the apiVersion for this resource does not exist.", fix
        ) from error
    except requests.RequestException as error:
        raise RefusalError("ClusterUnreachable", f"the control plane does not respond: {error}") from error


def kind_of(token: str) -> ObjectKind:
    """Kind of the objects of a resource type: Namespace for `NamespacePatch`."""
    kind = parse(token)
    return ObjectKind(kind.group, kind.version, kind.kind.removesuffix("Patch")) if is_patch(token) else kind


def body_of(token: str, inputs: Properties) -> Object:
    """The object of a resource's inputs."""
    kind = kind_of(token)
    asked = {name: value for name, value in inputs.items() if name != "status"}
    return {**asked, "apiVersion": kind.api_version, "kind": kind.kind}


def shown(live: Object) -> Properties:
    """An object as stored in the state: without managed fields."""
    metadata = {name: value for name, value in live["metadata"].items() if name != "managedFields"}
    return {**live, "metadata": metadata}


def known(inputs: Properties) -> bool:
    """Return whether a preview knows all values."""
    return all(value is not UNKNOWN for _, value in walk(inputs))


# -- previews ----------------------------------------------------------------------------------------------


def dry_create(api: KubernetesApi, body: Object, token: str) -> Object | None:
    """Result of a create in a dry run; None where it is not yet known. Raises RefusalError."""
    try:
        with refusals():
            found = api.apply(body, dry_run=True) if is_patch(token) else api.create(body, dry_run=True)
    except RefusalError as refusal:
        # Missing objects may be part of the same update; forbidden ones may be allowed then (quota).
        if refusal.code in ("NotFound", "NoMatch", "AlreadyExists", "Forbidden"):
            return None
        raise
    return _unborn(found)


def dry_update(api: KubernetesApi, body: Object, manager: str) -> Object | None:
    """Result of an update in a dry run; None where it is not yet known. Raises RefusalError."""
    try:
        with refusals():
            found = api.apply(body, dry_run=True, manager=manager)
    except RefusalError as refusal:
        if refusal.code in ("NotFound", "NoMatch", "Forbidden"):
            return None
        raise
    return {**shown(found), "metadata": {**shown(found)["metadata"], "resourceVersion": UNKNOWN}}


def _unborn(found: Object) -> Object:
    live = shown(found)
    return {**live, "metadata": {**live["metadata"], **dict.fromkeys(SERVER_SET, UNKNOWN)}, "status": UNKNOWN}


# -- changes -----------------------------------------------------------------------------------------------


def apply(api: KubernetesApi, body: Object, manager: str = MANAGER) -> Object:
    """Server-side apply, after taking ownership of the fields that this manager created."""
    metadata = body["metadata"]
    live = api.find(
        body["apiVersion"], body["kind"], metadata["name"], metadata.get("namespace") or "default"
    )
    entries = (live or {"metadata": {}})["metadata"].get("managedFields") or []
    mine = [row for row in entries if row.get("manager") == MANAGER and row["operation"] == "Update"]
    if live and mine:
        taken = [{**row, "operation": "Apply"} if row in mine else row for row in entries]
        api.patch(
            body["apiVersion"], body["kind"], metadata["name"],
            {"metadata": {"managedFields": taken, "resourceVersion": live["metadata"]["resourceVersion"]}},
            metadata.get("namespace") or "default",
        )  # fmt: skip
    return api.apply(body, manager=manager)


def manager_of(call: Call) -> str:
    """Field manager of a resource; a patch has its own."""
    if not is_patch(call.type):
        return MANAGER
    return f"{MANAGER}-{hashlib.sha256(call.urn.encode()).hexdigest()[:8]}"


def delete(call: Call, api: KubernetesApi, live: Object) -> None:
    """Delete an object and wait until it is gone. Raises RefusalError on a timeout by finalizers."""
    metadata, kind = live["metadata"], live["kind"]
    at = (live["apiVersion"], kind, metadata["name"], metadata.get("namespace") or "")
    with refusals():
        api.delete(*at)
    if skipped(live) and kind in _UNAWAITED:
        return
    ends = time.monotonic() + (call.timeout_s or _DELETE_S)
    while True:
        try:
            with refusals():
                left = api.find(*at)
        except RefusalError as refusal:
            if refusal.code != "NoMatch":
                raise
            return
        if left is None or left["metadata"]["uid"] != metadata["uid"]:
            return
        held = ", ".join(left["metadata"].get("finalizers") or ())
        if time.monotonic() >= ends or call.cancelled.wait(_POLL_S):
            why = f" finalizers might be preventing deletion ({held})" if held else ""
            raise RefusalError("TimedOut", f"timed out waiting for the condition;{why}")
        call.log("status", f"waiting for deletion{f' ({held})' if held else ''}")
