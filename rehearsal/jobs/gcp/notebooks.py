"""Running Workbench notebooks, and endpoints of Vertex AI, of which there are none.

Source: Notebooks API v2 (projects.locations.instances: list, stop; State), Vertex AI API v1
(projects.locations.endpoints.list), and IAM documentation of both for permissions.
"""

from collections.abc import Sequence

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.gcp.http import Answer, ApiCall, Method, ServiceError
from rehearsal.dataplane.gcp.iam_bindings import allowed_in_project

_NOTEBOOK = "gcp:workbench/instance:Instance"


class NotebooksApi:
    """See `http.Api`."""

    def __init__(self, state: State) -> None:
        self._state = state

    def methods(self) -> Sequence[Method]:
        """See `http.Api`."""
        place = r"projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)"
        return (
            Method("GET", f"v2/{place}/instances", self._notebooks),
            Method("POST", rf"v2/{place}/instances/(?P<name>[^/:]+):stop", self._stop),
            Method("GET", f"v1/{place}/endpoints", self._endpoints),
        )

    def _notebooks(self, call: ApiCall) -> Answer:
        self._authorise(call, "notebooks.instances.list")
        found = [one for one in self._state.find(type=_NOTEBOOK) if self._in(one, call)]
        return {"instances": [self._described(one) for one in found]} if found else {}

    def _stop(self, call: ApiCall) -> Answer:
        self._authorise(call, "notebooks.instances.stop")
        found = (one for one in self._state.find(type=_NOTEBOOK) if self._in(one, call))
        one = next((one for one in found if one.id.rpartition("/")[2] == call.parts["name"]), None)
        if one is None:
            raise ServiceError(404, f"Resource '{call.parts['name']}' was not found")
        self._state.replace(one, inputs=one.inputs, outputs={**one.outputs, "state": "STOPPED"})
        return {"name": f"{one.id.rpartition('/instances/')[0]}/operations/stop", "done": True}

    def _endpoints(self, call: ApiCall) -> Answer:
        self._authorise(call, "aiplatform.endpoints.list")
        return {}

    def _authorise(self, call: ApiCall, permission: str) -> None:
        if not allowed_in_project(self._state, call.caller.members, permission, call.parts["project"]):
            raise ServiceError(403, f"Permission '{permission}' denied on the project (or it may not exist).")

    def _in(self, one: Record, call: ApiCall) -> bool:
        """Return whether a notebook is in the requested project and location (`-`: any location)."""
        place = f"projects/{call.parts['project']}/locations/"
        location = call.parts["location"]
        return one.id.startswith(place if location == "-" else f"{place}{location}/")

    def _described(self, one: Record) -> Answer:
        labels = one.outputs.get("effectiveLabels") or one.inputs.get("labels") or {}
        return {"name": one.id, "state": one.outputs.get("state"), "labels": labels}
