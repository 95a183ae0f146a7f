"""The API server's response to a sequence, with the provider's requests: POST to create, apply to update."""

import contextlib
import json
import time
import uuid
from typing import Any

from components.kubernetes.queueing.kueue import GATE_NAMESPACE
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object, UnknownKindError
from rehearsal.core.model import Properties
from rehearsal.kubernetes.kinds import HELM_RELEASE, parse
from rehearsal.kubernetes.rules.book import NAMESPACE, SERVICE
from tests.cluster.differential.corpus import Sequence, Step
from tests.cluster.differential.verdicts import ACCEPTED, Verdict, fields, named

_MANAGER = "differential"
_SETTLED_S = 3.0
# Namespaces of a stack that this control plane has already; tests before may have left the gate's.
_THERE = ("kueue-system", "jobset-system", "kubeflow-system", GATE_NAMESPACE)
_STRICT = {"fieldValidation": "Strict"}
_APPLY = "application/apply-patch+yaml"


class Server:
    """Runs sequences. The last request of each is a dry run, so most leave nothing behind."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._worlds: dict[str, dict[str, str]] = {}
        self._made: list[Object] = []

    def answer(self, sequence: Sequence, expected: list[Verdict]) -> list[Verdict]:
        """What each step gets.

        Admission reads caches that follow a moment later: an answer that is not the expected one is asked for
        again for a while where it may depend on what was just made.
        Raises AssertionError when the world is not accepted.
        """
        made: list[Object] = []
        try:
            places = self._furnished(sequence, made)
            found = []
            for number, step in enumerate(sequence.steps):
                # A dry run allocates no ports and addresses, so it refuses none.
                dry = number == len(sequence.steps) - 1 and step.token != SERVICE
                verdict = self._ask(step, places, made, dry=dry)
                deadline = time.monotonic() + (_SETTLED_S if sequence.world and dry else 0)
                while verdict.accepted != expected[number].accepted and time.monotonic() < deadline:
                    time.sleep(0.1)
                    verdict = self._ask(step, places, made, dry=dry)
                found.append(verdict)
            return found
        finally:
            for body in reversed(made):
                self._remove(body)

    def close(self) -> None:
        """Remove the namespaces of all worlds."""
        for body in self._made:
            self._remove(body)

    def _furnished(self, sequence: Sequence, made: list[Object]) -> dict[str, str]:
        """The names here of the namespaces of a world, whose objects exist; the same world is made once."""
        world = [(token, inputs) for token, inputs in sequence.world if token != HELM_RELEASE]
        # Services hold addresses that other sequences ask for.
        kept = [row for row in world if row[0] != SERVICE]
        spaced = [row for row in kept if row[0] == NAMESPACE or row[1]["metadata"].get("namespace")]
        key = json.dumps(spaced, sort_keys=True)
        if key not in self._worlds:
            given = {inputs["metadata"]["name"] for token, inputs in world if token == NAMESPACE}
            names = {"lab", *given, *_THERE}
            self._worlds[key] = {name: f"differ-{uuid.uuid4().hex[:8]}" for name in names}
            bare = [] if "lab" in given else [(NAMESPACE, {"metadata": {"name": "lab"}})]
            for token, inputs in sorted([*bare, *spaced], key=lambda row: row[0] != NAMESPACE):
                self._create(sequence, (token, inputs), self._worlds[key], self._made)
        for row in world:
            if row not in spaced:
                self._create(sequence, row, self._worlds[key], made)
        return self._worlds[key]

    def _create(
        self, sequence: Sequence, one: tuple[str, Properties], places: dict[str, str], made: list[Object]
    ) -> None:
        verdict = self._ask(Step("create", *one), places, made, dry=False)
        assert verdict.accepted, f"{sequence.name}: the API server refuses the world: {verdict}"
        body = made[-1]
        deadline = time.monotonic() + 30
        while body["kind"] == "ResourceQuota" and not self._again(body).get("status", {}).get("hard"):
            assert time.monotonic() < deadline, f"{sequence.name}: the quota has no status"
            time.sleep(0.05)

    def _ask(self, step: Step, places: dict[str, str], made: list[Object], *, dry: bool) -> Verdict:
        body = _placed(_body(step), places)
        query = {"fieldManager": _MANAGER, **({"dryRun": "All"} if dry else {})}
        try:
            if step.verb == "create":
                self._api.request("POST", self._url(body, named=False), body, query={**query, **_STRICT})
                made.extend([] if dry else [body])
            elif step.verb == "update":
                self._update(body, query)
            else:
                self._remove(body)
        except ApiError as error:
            return _refused(error)
        except UnknownKindError as error:
            return Verdict(False, "NoMatch", text=str(error))
        return ACCEPTED

    def _update(self, body: Object, query: dict[str, str]) -> None:
        """As ssaUpdate in the provider's await/await.go: what it created it owns, then it applies."""
        live = self._again(body)
        if body["kind"] == "CustomResourceDefinition":
            version = {"resourceVersion": live["metadata"]["resourceVersion"]}
            newer = {**body, "metadata": {**body["metadata"], **version}}
            try:
                self._api.request("PUT", self._url(body), newer, query={**query, **_STRICT})
            except ApiError as error:
                if error.reason != "Conflict":
                    raise
                self._update(body, query)  # a controller wrote its status meanwhile
            return
        owned = [{**row, "operation": "Apply"} if row["manager"] == _MANAGER else row
                 for row in live["metadata"]["managedFields"]]  # fmt: skip
        patch: Object = {"metadata": {"managedFields": owned}}
        self._api.request("PATCH", self._url(body), patch, content="application/merge-patch+json")
        self._api.request("PATCH", self._url(body), body, content=_APPLY, query={**query, "force": "true"})

    def _again(self, body: Object) -> Object:
        return self._api.request("GET", self._url(body))

    def _remove(self, body: Object) -> None:
        metadata = body["metadata"]
        place = (body["apiVersion"], body["kind"], metadata["name"], metadata.get("namespace") or "default")
        self._api.delete(*place, propagation="Background")
        with contextlib.suppress(ApiError):  # gone: nothing held it
            if body["kind"] != "Namespace":
                self._api.patch(*place[:3], {"metadata": {"finalizers": None}}, place[3])

    def _url(self, body: Object, *, named: bool = True) -> str:
        metadata = body["metadata"]
        resource = self._api.resource(body["apiVersion"], body["kind"])
        return resource.url(str(metadata.get("namespace") or "default"), metadata["name"] if named else "")


def _body(step: Step) -> Object:
    kind = parse(step.token)
    return {"apiVersion": kind.api_version, "kind": kind.kind, **step.inputs}


def _placed(body: Object, places: dict[str, str]) -> Object:
    """The object with this control plane's names for its namespaces."""

    def there(value: Any, key: str) -> Any:
        name = value.get(key) if isinstance(value, dict) else None
        return {**value, key: places[name]} if isinstance(name, str) and name in places else value

    made = {**body, "metadata": there(body.get("metadata"), "namespace")}
    if body["kind"] == "Namespace":
        made["metadata"] = there(made["metadata"], "name")
    if isinstance(body.get("subjects"), list):
        made["subjects"] = [there(row, "namespace") for row in body["subjects"]]
    return made


def _refused(error: ApiError) -> Verdict:
    text = str(error)
    paths = fields(error.fields) or named(text)
    # A patch that cannot be decoded is always an error 500.
    reason = "Invalid" if paths or error.code in (400, 422, 500) else error.reason
    return Verdict(False, reason, paths, error.code == 422, text)
