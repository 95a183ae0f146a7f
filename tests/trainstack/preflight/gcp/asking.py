"""A project that answers what a test says; requests and answers are held against discovery documents."""

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import requests
from requests.adapters import BaseAdapter

from infra.stackspec import StackSpec
from infra.stackspec.document import read
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layers import PROFILES_FOLDER
from infra.stackspec.layouts import ClusterLayout
from tests.stacks.stack_files import DIGEST, at
from tests.trainstack.preflight.gcp.google_schemas import FILE
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.methods import METHODS
from trainstack.preflight.gcp.project import Project, answered
from trainstack.preflight.machine import LocalMachine

ID, NUMBER, BILLING = "example-ml", "746918459997", "012345-6789AB-CDEF01"
ME = "user:anna@example.com"
STACK: dict[str, Any] = {
    "name": "dev-gcp",
    "region": "us-central1",
    "owner": "ml@example.com",
    "cost_center": "research",
    "environment": "dev",
    "data_class": "internal",
    "expires_on": "never",
    "layout": {
        "profile": "medium",
        "zones": ["us-central1-a", "us-central1-b"],
        "api_access": ["198.51.100.0/24"],
        "pools": [
            {
                "name": "h100",
                "machine": "a3-megagpu-8g",
                "purpose": "training",
                "purchase": {"kind": "on_demand"},
                "zones": ["us-central1-a"],
                "rdma": True,
                "max_nodes": 4,
            },
            {
                "name": "l4",
                "machine": "g2-standard-12",
                "purpose": "interactive",
                "purchase": {"kind": "spot"},
                "zones": ["us-central1-a", "us-central1-b"],
                "rdma": False,
                "max_nodes": 8,
            },
            {
                "name": "cpu",
                "machine": "n2-standard-16",
                "purpose": "data",
                "purchase": {"kind": "on_demand"},
                "zones": ["us-central1-a"],
                "rdma": False,
                "max_nodes": 2,
                "disk_gib": 100,
            },
        ],
    },
    "on": {"cloud": "gcp", "project": ID, "billing_account": BILLING, "admins": [ME]},
    "data": {"shared_fs": {"capacity_gib": 18000, "throughput_mb_s_per_tib": 500, "zone": "us-central1-a"}},
    "tracking": {"image": f"us-docker.pkg.dev/example-ml/ml/mlflow{DIGEST}"},
    "teams": [{"name": "Research", "gpus": {"h100": 8}}],
    "budget": {"monthly_usd": 60000, "alert_emails": ["ml@example.com"]},
    "smoke": {"image": f"us-docker.pkg.dev/example-ml/ml/pytorch{DIGEST}"},
}
Reply = tuple[int, Any]
Said = Mapping[str, Any] | Reply | Callable[[Mapping[str, Any]], Mapping[str, Any] | Reply]


def refused(status: int, code: str, message: str = "", **info: Any) -> Reply:
    """How Google refuses (google.rpc.Status with an ErrorInfo)."""
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", **info}] if info else []
    return status, {"error": {"code": status, "status": code, "message": message or code, "details": details}}


DENIED = refused(403, "PERMISSION_DENIED", "Permission denied on resource")
ABSENT = refused(404, "NOT_FOUND", "not found")


def disabled(service: str) -> Reply:
    """What is said where an API is switched off."""
    metadata = {"service": service, "consumer": f"projects/{NUMBER}"}
    said = f"{service} has not been used in project {NUMBER} before or it is disabled."
    return refused(403, "PERMISSION_DENIED", said, reason="SERVICE_DISABLED", metadata=metadata)


class Google:
    """APIs with the answer that each method gives; one that a test does not know fails it."""

    def __init__(self, said: Mapping[str, Said] | None = None) -> None:
        about = {"name": f"projects/{NUMBER}", "projectId": ID, "state": "ACTIVE"}
        self.said: dict[str, Said] = {"cloudresourcemanager.projects.get": about, **(said or {})}
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def session(self) -> requests.Session:
        """One whose requests are answered from here."""
        made = requests.Session()
        made.mount("https://", _Memory(self))
        return made

    def given(self, method: str) -> list[dict[str, Any]]:
        """What each request of a method said."""
        return [given for name, given in self.asked if name == method]

    def answer(self, verb: str, address: str, body: bytes) -> Reply:
        """What Google says to a request: of the method that it is of, by its discovery document."""
        parts = urlsplit(address)
        method, given = _method(verb, f"https://{parts.netloc}{parts.path}")
        given |= {name: values[-1] for name, values in parse_qs(parts.query).items()}
        given |= json.loads(body or b"{}")
        self.asked.append((method, given))
        assert method in self.said, f"{method} was asked with {given}"
        found = self.said[method]
        made = found(given) if callable(found) else found
        status, said = made if isinstance(made, tuple) else (200, made)
        if status == 200:
            api, row = row_of(method)
            allowed = {*row["parameters"], *(() if verb == "GET" else ("permissions",))}
            assert set(given) <= allowed, f"{method} has no {set(given) - allowed}"
            conforms(api, f"#{row['response']}", said, method)
        return status, said


class _Memory(BaseAdapter):
    def __init__(self, google: Google) -> None:
        super().__init__()
        self._google = google

    def send(self, request: requests.PreparedRequest, **_: Any) -> requests.Response:  # type: ignore[override]
        body = request.body if isinstance(request.body, bytes) else b""
        status, said = self._google.answer(str(request.method), str(request.url), body)
        made = requests.Response()
        made.request, made.url, made.status_code = request, str(request.url), status
        made._content = json.dumps(said).encode()
        return made

    def close(self) -> None:
        pass


@functools.cache
def documents() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text()))


def row_of(method: str) -> tuple[str, Any]:
    """The document of a method and what it says of it."""
    return next((api, one["methods"][method]) for api, one in documents().items() if method in one["methods"])


@functools.cache
def _forms() -> list[tuple[str, str, re.Pattern[str]]]:
    """Addresses as patterns, the longer ones first: `{name}` of one method would fit those of others."""
    found = []
    for api, one in documents().items():
        for name, row in one["methods"].items():
            text = re.escape(row["address"]).replace(r"\{", "{").replace(r"\}", "}")
            wide = r"(?P<\1>[^:]+)" if api != "compute.v1" else r"(?P<\1>[^/]+)"
            found.append((name, row["verb"], re.compile(re.sub(r"\{(\w+)\}", wide, text))))
    return sorted(found, key=lambda one: -len(one[2].pattern))


def _method(verb: str, address: str) -> tuple[str, dict[str, Any]]:
    for name, its, form in _forms():
        found = form.fullmatch(address)
        given = {key: unquote(value) for key, value in found.groupdict().items()} if found else {}
        # Folders, organizations and projects have one address.
        meant = given.get("name", "").startswith(f"{name.split('.')[1]}/") or "name" not in given
        if its == verb and found and meant:
            return name, given
    raise AssertionError(f"no method is asked by {verb} {address}")


def conforms(api: str, form: Any, value: Any, where: str) -> None:
    """Raise AssertionError where an answer is not of its schema."""
    while isinstance(form, str) and form.startswith("#"):
        form = documents()[api]["schemas"][form[1:]]
    if isinstance(form, dict) and "*" in form:
        assert isinstance(value, Mapping), where
        for key, one in value.items():
            conforms(api, form["*"], one, f"{where}.{key}")
    elif isinstance(form, dict):
        assert isinstance(value, Mapping), where
        for key, one in value.items():
            assert key in form, f"{where} has no {key}"
            conforms(api, form[key], one, f"{where}.{key}")
    elif isinstance(form, list):
        assert isinstance(value, Sequence) and not isinstance(value, str), where
        for one in value:
            conforms(api, form[0], one, f"{where}[]")
    else:
        kinds: dict[str, Any] = {"string": str, "integer": int, "boolean": bool, "number": (int, float)}
        assert isinstance(value, kinds.get(form, object)), f"{where} is {form}, not {value!r}"


def spec(**changes: Any) -> StackSpec:
    """The spec of a medium stack with other values at paths such as `layout__api_access`."""
    made: dict[str, Any] = {}
    for layer in (
        read(PROFILES_FOLDER / "medium.yaml", "f"),
        read(PROFILES_FOLDER / "medium.gcp.yaml", "f"),
        STACK,
    ):
        _fold(made, json.loads(json.dumps(layer)))
    for path, value in changes.items():
        at(made, path.replace("__", "."), value)
    return StackSpec.model_validate(made)


def _fold(into: dict[str, Any], layer: Mapping[str, Any]) -> None:
    for key, value in layer.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _fold(into[key], value)
        else:
            into[key] = value


def project(
    google: Google, machine: LocalMachine | None = None, me: str | None = ME, /, **changes: Any
) -> Project:
    """The project of that stack."""
    made = spec(**changes)
    assert isinstance(made.layout, ClusterLayout) and isinstance(made.on, GcpSpec)
    deploys = machine or LocalMachine(connects=lambda *_: False)
    return Project(made, made.layout, made.on, google.session(), lambda: me, deploys)


def asked(check: Callable[[Project], Iterator[Answer]], of: Project) -> list[Answer]:
    """What a check answers, as the command makes it."""
    return list(answered("check", check, of))


def states(answers: Sequence[Answer]) -> list[State]:
    return [answer.state for answer in answers]


def aggregated(key: str, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """An aggregated list of Compute Engine: rows by scope; those without say so."""
    empty = {"warning": {"code": "NO_RESULTS_ON_PAGE", "message": "There are no results for this scope."}}
    scopes: dict[str, Any] = {scope: {key: [*found]} for scope, found in rows.items()}
    return {"items": {**scopes, "zones/us-west1-b": empty}}


assert set(METHODS) <= {name for one in documents().values() for name in one["methods"]}
