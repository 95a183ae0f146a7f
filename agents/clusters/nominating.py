"""Write the cluster of a job so that Kueue can take it back: as its own field manager, by server-side apply.

Kueue applies the status of a Workload as `kueue-admission`, and an apply removes only fields that no other
manager has (kueue v0.19.2 pkg/workload/patching/patching.go, `PatchAdmissionStatus`). Where another manager
wrote `nominatedClusterNames`, they stay beside the `clusterName` that Kueue sets once the worker admitted the
job. The API server refuses both together: the job would run, but never be admitted on the manager. An apply
also removes what the same manager applied before and does not repeat, so all of that is repeated. Standard
library only.
"""

import json
from collections.abc import Mapping
from typing import Any

from agents.shared.api_server import ApiServer, Object

MANAGER = "kueue-admission"
"""Field manager (kueue v0.19.2 pkg/constants/constants.go, `AdmissionName`)."""


class ApplyingServer(ApiServer):
    """An API server to which a status can be applied."""

    def apply(self, path: str, body: Object) -> tuple[int, Object]:
        """Apply an object as `MANAGER`; returns the HTTP status and the response. Raises OSError."""
        # JSON is YAML.
        kind = "application/apply-patch+yaml"
        return self._answered("PATCH", f"{path}?fieldManager={MANAGER}&force=true", body, kind)


def nomination(workload: Object, cluster: str) -> dict[str, Any]:
    """The object to apply: what Kueue applied to the status, with the cluster; of the same version only."""
    metadata = workload["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "resourceVersion")}
    status = applied(workload).get("status") or {}
    return {
        "apiVersion": workload["apiVersion"],
        "kind": workload["kind"],
        "metadata": kept,
        "status": {**status, "nominatedClusterNames": [cluster]},
    }


def applied(body: Object) -> dict[str, Any]:
    """The fields of an object that `MANAGER` has by apply (structured-merge-diff v6, `fieldpath`)."""
    found: dict[str, Any] = {}
    for row in body["metadata"].get("managedFields") or ():
        if row.get("manager") == MANAGER and row.get("operation") == "Apply":
            found |= _of(row.get("fieldsV1") or {}, body)
    return found


def _of(fields: Mapping[str, Any], value: Any) -> Any:
    """The part of a value that a set of fields names; all of it where the set has no members."""
    members = {key: inner for key, inner in fields.items() if key != "."}
    if not members:
        return value
    if isinstance(value, list):
        keys = {key: json.loads(key[2:]) for key in members if key.startswith("k:")}
        return [
            _of(members[key], row)
            for row in value
            for key, wanted in keys.items()
            if all(row.get(name) == one for name, one in wanted.items())
        ]
    return {
        key[2:]: _of(inner, value[key[2:]])
        for key, inner in members.items()
        if key.startswith("f:") and key[2:] in value
    }
