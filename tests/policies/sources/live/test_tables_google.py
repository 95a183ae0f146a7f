"""The tables of Google Cloud against discovery documents of its APIs and the types of the SDK."""

import importlib
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jmespath
import pytest

from policies.evaluate import evaluate
from policies.resource import Resource
from policies.rules import CATALOG
from policies.sources.live.mapping import Each, LiveKind, One
from policies.sources.live.queries import ApiQuery
from policies.sources.live.tables import tables
from policies.stack import Stack
from tests.policies.recording.recordings import VERDICTS, keys, rows
from tests.policies.sources.live.google_fields import SCHEMAS, documents
from tests.policies.sources.live.sdk_shapes import held_against, named, state_of
from trainstack.collect.gcp.methods import METHODS

GCP = tables("gcp")
KINDS = {kind.kind: kind for kind in GCP.kinds}
WHERE = {"asked", "account", "of", "assetName", ""}
# Of a list that is no list of assets: the document and the schema of its items.
ITEMS = {
    "billingbudgets": ("billingbudgets.v1", "GoogleCloudBillingBudgetsV1Budget"),
    "cloudbilling": ("cloudbilling.v1", "ProjectBillingInfo"),
    "cloudresourcemanager": ("cloudresourcemanager.v3", "Policy"),
    "logging": ("logging.v2", "LogSink"),
    "parallelstore": ("parallelstore.v1", "Instance"),
    "storage": ("storage.v1", "HmacKeyMetadata"),
}


def schema(question: ApiQuery) -> tuple[str, Any]:
    if question.service == "cloudasset":
        if question.given["contentType"] == "IAM_POLICY":
            return "cloudasset.v1", "#Asset"
        api, name = SCHEMAS[question.given["assetTypes"]]
    else:
        api, name = ITEMS[question.service]
    return api, f"#{name}"


def below(api: str, form: Any, path: str) -> Any:
    """The form at a path. Raises KeyError where a discovery document has none."""
    for step in filter(None, path.split(".")):
        form = inner(api, form)
        form = form["*"] if "*" in form and step not in form else form[step]
    return form


def inner(api: str, form: Any) -> Any:
    while True:
        if isinstance(form, list):
            (form,) = form
        elif isinstance(form, str) and form.startswith("#"):
            form = documents()[api]["schemas"][form[1:]]
        else:
            return form


@pytest.mark.parametrize("question", GCP.queries.values(), ids=list(GCP.queries))
def test_a_question_is_one_of_its_api(question: ApiQuery) -> None:
    name = f"{question.service}.{question.operation}"
    method = METHODS[name]
    found = [row for one in documents().values() for row in [one["methods"].get(name)] if row]
    places = {re.sub(r"\{\w+\}", "{}", row["address"]): row for row in found}
    row = places[re.sub(r"\{\w+\}", "{}", method.address)]
    assert method.verb == row["verb"]
    given = {*question.given, *question.by}
    in_path = set(re.findall(r"\{(\w+)\}", method.address))
    assert in_path <= given & set(row["parameters"])
    if method.verb == "GET":
        assert given | method.page.keys() <= set(row["parameters"])
        assert bool(method.page) == ("pageToken" in row["parameters"])
    jmespath.compile(question.key or "@")
    assert re.fullmatch(r"[a-z]+(\.[a-zA-Z]+){2}", question.right)


def paths(shape: Any, api: str, form: Any) -> Iterator[tuple[str, Any]]:
    for how in shape.values():
        if isinstance(how, str):
            yield how, form
        elif isinstance(how, Each | One):
            yield how.path, form
            yield from paths(how.shape, api, below(api, form, how.path))


@pytest.mark.parametrize("name", KINDS)
def test_paths_of_a_table_are_fields_of_the_answer(name: str) -> None:
    """Those that functions read are held by the assets of the tests, which have to be of these schemas."""
    kind = KINDS[name]
    api, form = schema(GCP.queries[kind.query])
    if kind.each:
        form = below(api, form, kind.each)
    for path, holder in [*paths(kind.props, api, form), (kind.tags, form)]:
        if path.partition(".")[0] not in WHERE:
            below(api, holder, path)


@pytest.mark.parametrize("name", KINDS)
def test_a_table_makes_properties_that_the_sdk_has(name: str) -> None:
    importlib.import_module("pulumi_gcp")
    kind: LiveKind = KINDS[name]
    properties, objects = state_of(name)
    held_against(kind.props, properties, objects, name)
    assert {*kind.program_only, *kind.keys} <= set(properties)
    if kind.tags:
        assert properties.keys() & {"labels", "resourceLabels"}


def test_every_type_of_a_rule_is_reported_or_has_another_form() -> None:
    # Types that are named with a reason of their own are undetermined in a live audit.
    reported = {*KINDS, *GCP.absent, *GCP.unreported}
    of_rules = named("gcp")
    assert len(of_rules) > 35
    assert of_rules <= reported, of_rules - reported
    assert GCP.absent <= of_rules


class Watched(dict[str, Any]):
    """Properties that remember what was read of them."""

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)


def test_properties_that_rules_read_are_reported() -> None:
    """Of every type with nothing set, and of all recorded resources, by all rules about the type."""
    kept = [one for key in keys() for verdict in VERDICTS for one in _recorded(rows(key, verdict))]
    kept += [Resource(kind, f"urn:{kind}", kind, id=kind) for kind in KINDS]
    importlib.import_module("pulumi_gcp")
    lacking: set[str] = set()
    for one in kept:
        watched = Watched(one.props)
        evaluate(Stack([replace(one, props=watched)]), CATALOG.rules.values())
        reported = {*KINDS[one.kind].props, *KINDS[one.kind].program_only}
        has = state_of(one.kind)[0].keys()
        lacking |= {f"{one.kind} {name}" for name in (watched.read & has) - reported}
    assert lacking == UNTOLD


def _recorded(recorded: list[Any]) -> Iterator[Resource]:
    for row in recorded:
        if row["type"] in KINDS:
            props = {**row.get("inputs", {}), **row.get("outputs", {})}
            yield Resource(row["type"], row["urn"], row["urn"], id=row["id"], props=props)


# The first pool again, which the project reports as a pool, with its size.
UNTOLD = {"gcp:container/cluster:Cluster nodeConfig", "gcp:container/cluster:Cluster initialNodeCount"}
