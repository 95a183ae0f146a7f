"""Commands of gcloud for login nodes of Cluster Director: `compute instances list` and `compute ssh`.

Source: gcloud reference; IAM documentation for the permissions of a tunnel
(`iap.tunnelInstances.accessViaIAP`) and of an administrator's login (`compute.instances.osAdminLogin`). A
script runs at once, in the real Slurm that stands for the cluster (`rehearsal.slurm.director`).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from infra.engine.golang import SetupError
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.gcp.http import Answer, ApiCall, Method
from rehearsal.dataplane.gcp.iam_bindings import allowed_in_project
from rehearsal.gcloud import PATH
from rehearsal.slurm.director import DirectorClusters

_TUNNEL: Final = ("iap.tunnelInstances.accessViaIAP", "compute.instances.osAdminLogin")
_NO_CONNECTION: Final = 255
_SHELL: Final = "sudo bash -s"


class LoginNodes:
    """See `http.Api`."""

    def __init__(self, state: State, clusters: DirectorClusters) -> None:
        self._state, self._clusters = state, clusters

    def methods(self) -> Sequence[Method]:
        """See `http.Api`."""
        return (Method("POST", PATH, self._run),)

    def _run(self, call: ApiCall) -> Answer:
        words, text = [str(one) for one in call.body["words"]], str(call.body["input"])
        chosen = _options(words)
        project = chosen.get("project", "")
        match words[:2]:
            case ["compute", "instances"]:
                if denied := self._denied(call, project, ("compute.instances.list",)):
                    return denied
                return _answer(json.dumps(self._listed(project, chosen.get("filter", ""))))
            case ["compute", "ssh"]:
                if denied := self._denied(call, project, _TUNNEL):
                    return denied
                return self._ssh(words[2], project, chosen, text)
        return _answer(errors=f"ERROR: (gcloud) {' '.join(words[:2])} is not emulated", code=2)

    def _denied(self, call: ApiCall, project: str, permissions: Sequence[str]) -> Answer | None:
        for one in permissions:
            if not allowed_in_project(self._state, call.caller.members, one, project):
                return _answer(errors=f"ERROR: (gcloud.compute) Required '{one}' permission", code=1)
        return None

    def _listed(self, project: str, wanted: str) -> list[dict[str, str]]:
        terms = (term for term in wanted.split(" AND ") if term.startswith("labels."))
        labels = dict(term.removeprefix("labels.").split("=", 1) for term in terms)
        return [
            {"name": name, "zone": f"https://www.googleapis.com/compute/v1/projects/{project}/zones/{zone}"}
            for one in self._clusters.records()
            for place, zone, name in _instances(one)
            if place == project and labels.items() <= _labels(one).items()
        ]

    def _ssh(self, node: str, project: str, chosen: Mapping[str, str], text: str) -> Answer:
        found = [
            one for one in self._clusters.records() if (project, chosen.get("zone"), node) in _instances(one)
        ]
        if not found or "tunnel-through-iap" not in chosen:
            # No machine of a stack has a public address.
            return _answer(errors="ERROR: (gcloud.compute.ssh) Could not fetch resource", code=1)
        if chosen.get("command") != _SHELL:
            return _answer(errors="only scripts of bash are emulated", code=2)
        try:
            code, output = self._clusters.run(found[0], text)
        except SetupError as error:
            why = f"this rehearsal has no Slurm to run on ({error}); scripts of the login node cannot run"
            return _answer(errors=why, code=1)
        return _answer(output, code=code)


def _answer(output: str = "", *, errors: str = "", code: int = 0) -> Answer:
    return {"output": output, "errors": errors, "code": code}


def _options(words: Sequence[str]) -> dict[str, str]:
    """Options with their values; those without a value have an empty one."""
    found: dict[str, str] = {}
    for index, word in enumerate(words):
        if word.startswith("--"):
            following = words[index + 1] if index + 1 < len(words) else ""
            found[word.removeprefix("--")] = "" if following.startswith("--") else following
    return found


def _instances(cluster: Record) -> list[tuple[str, str, str]]:
    """Project, zone and name of each login node."""
    login = _login(cluster.outputs)
    names = [str(one.get("instance")).split("/") for one in login.get("instances") or ()]
    return [(words[1], words[3], words[5]) for words in names]


def _labels(cluster: Record) -> dict[str, str]:
    return dict(_login(cluster.inputs).get("labels") or {})


def _login(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    slurm = (properties.get("orchestrator") or {}).get("slurm") or {}
    return slurm.get("loginNodes") or {}
