"""Two judges of every resource of the shipped stacks on Google Cloud, and mutations that each refuses.

The provider's source says what the provider refuses before it sends a request, Google's discovery documents
what its services do. Both are in one file: composing a stack is most of the time.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from rehearsal.core.properties import each, steps
from rehearsal.core.schema import Schemas
from rehearsal.core.validate import validate
from rehearsal.gcp.provider import SERVICES, facts
from rehearsal.gcp.rules import BOOK
from tests.stacks.composition.composed import stack_spec
from tests.stacks.composition.variants import VARIANTS
from tests.stacks.google_judge.discovery import Judge, apis
from tests.stacks.google_judge.shipped import STACKS, Requested, composed, requested
from tools.gcp_discovery import of_services

CLUSTER, POOL = "container/cluster:Cluster", "container/nodePool:NodePool"
NETWORK, FIREWALL = "compute/network:Network", "compute/firewall:Firewall"
BUCKET, SQL = "storage/bucket:Bucket", "sql/databaseInstance:DatabaseInstance"
SETTINGS = "iap/settings:Settings"
EXCLUSION = "maintenancePolicy.maintenanceExclusions[0].exclusionOptions.scope"
# The package of the discovery documents has none of Managed Lustre.
NOT_IN_DOCUMENTS = {"lustre/instance:Instance"}
# Requirements for labels, Resource Manager documentation; user labels of monitoring are labels, too.
LABELS = {"labels", "resourceLabels", "userLabels"}
KEY, VALUE = re.compile(r"[a-z][a-z0-9_-]{0,62}"), re.compile(r"[a-z0-9_-]{0,63}")

Inputs = Mapping[str, Any]


def by_provider(token: str, inputs: Inputs, schemas: Schemas) -> list[str]:
    schema = schemas.resource(f"gcp:{token}")
    assert schema is not None and token in facts(), token
    found = [f"{one.property}: {one.reason}" for one in validate(schema, dict(inputs))]
    broken = BOOK.broken_alone(f"gcp:{token}", dict(inputs))
    return [*found, *(f"{violation.path}: {violation.message}" for _, violation in broken)]


def by_documents(token: str, inputs: Inputs, _: Schemas) -> list[str]:
    return [] if token in NOT_IN_DOCUMENTS else list(Judge(token).problems(inputs))


JUDGES: dict[str, Callable[[str, Inputs, Schemas], list[str]]] = {
    "provider": by_provider,
    "documents": by_documents,
}


@pytest.mark.parametrize("stack", STACKS)
def test_every_resource_is_accepted(stack: str, schemas: Schemas) -> None:
    asked = requested(stack)
    assert len(asked) >= 90 and all_problems(asked, schemas) == {}


@pytest.mark.more
@pytest.mark.parametrize("variant", VARIANTS["medium", "gcp"])
def test_every_resource_of_a_variant_is_accepted(variant: str, schemas: Schemas) -> None:
    asked = composed(stack_spec(("medium", "gcp"), VARIANTS["medium", "gcp"][variant]))
    assert len(asked) >= 90 and all_problems(asked, schemas) == {}


def test_a_login_by_a_client_of_the_project_is_accepted(schemas: Schemas) -> None:
    client = {"client_id": "1-a.apps.googleusercontent.com", "client_secret": "projects/keys/secrets/login"}
    asked = composed(stack_spec(("small", "gcp"), lambda spec: spec["on"].update({"login": client})))
    assert SETTINGS in {token for token, _, _ in asked} and all_problems(asked, schemas) == {}
    wrong = {"name": "n", "accessSettings": {"oauthSettings": {"clientSecretSha": "x"}}}
    assert by_documents(SETTINGS, wrong, schemas) and by_provider(SETTINGS, wrong, schemas)


def all_problems(asked: tuple[Requested, ...], schemas: Schemas) -> dict[str, list[str]]:
    return {
        f"{judge}: {token} {name}": found
        for token, name, inputs in asked
        for judge, problems in JUDGES.items()
        if (found := problems(token, inputs, schemas))
    }


@pytest.mark.parametrize("stack", STACKS)
def test_labels_are_what_every_service_accepts(stack: str) -> None:
    for token, name, inputs in requested(stack):
        for labels in _labels(inputs):
            assert len(labels) <= 64, (token, name)
            for key, value in labels.items():
                assert KEY.fullmatch(key) and VALUE.fullmatch(str(value)), (token, name, key, value)


def _labels(value: Any) -> Iterator[Mapping[str, Any]]:
    items = value if isinstance(value, list) else value.values() if isinstance(value, Mapping) else ()
    for item in items:
        yield from _labels(item)
    if isinstance(value, Mapping):
        # Those of nodes are Kubernetes', those of a channel its address, those of a budget's filter lists.
        plain = not {"machineType", "displayName", "calendarPeriod"} & value.keys()
        yield from (value[name] for name in LABELS & value.keys() if plain or name != "labels")


def test_every_type_is_judged() -> None:
    types = {token for stack in STACKS for token, _, _ in requested(stack)}
    of_variants = {"storage/anywhereCache:AnywhereCache", SETTINGS}
    assert (types | of_variants) - NOT_IN_DOCUMENTS == apis().keys() and types <= facts().keys()


@pytest.mark.parametrize("stack", STACKS)
def test_the_rehearsal_refuses_every_value_that_the_documents_refuse(stack: str, schemas: Schemas) -> None:
    mutated = 0
    for token, name, inputs in requested(stack):
        schema = schemas.resource(f"gcp:{token}")
        assert schema is not None
        for path, _ in Judge(token).words(schema) if token in apis() else ():
            for here, _ in each(dict(inputs), path):
                changed = _with(inputs, here, "NO_SUCH_WORD")
                for judge, problems in JUDGES.items():
                    said = problems(token, changed, schemas)
                    assert any(one.startswith(here) for one in said), (judge, token, name, here)
                mutated += 1
    assert mutated >= 50


def test_the_values_of_services_in_the_rehearsal_are_those_of_the_documents(schemas: Schemas) -> None:
    assert json.loads(SERVICES.read_text())["types"] == of_services(schemas)


# Judge -> (type, path, value, path of the refusal if another)
MUTATIONS: dict[str, list[tuple[str, str, Any, str]]] = {
    "provider": [
        # a word that the provider does not know
        (CLUSTER, "releaseChannel.channel", "FAST", ""),
        (CLUSTER, EXCLUSION, "NO_NODES", ""),
        (POOL, "upgradeSettings.strategy", "ROLLING", ""),
        # a number out of its range
        (SQL, "settings.maintenanceWindow.day", 8, ""),
        (POOL, "autoscaling.totalMinNodeCount", -1, ""),
        # a name or value that does not match its pattern or form
        (CLUSTER, "name", "Dev", ""),
        (NETWORK, "name", "dev_network", ""),
        (CLUSTER, "maintenancePolicy.recurringWindow.startTime", "2:00", ""),
        ("serviceaccount/account:Account", "accountId", "short", ""),
        ("storage/managedFolder:ManagedFolder", "name", "teams/vision", ""),
        ("kms/cryptoKey:CryptoKey", "rotationPeriod", "3600s", ""),
        (BUCKET, "labels", {"Team": "vision"}, ""),
        # a pair that excludes each other
        (CLUSTER, "ipAllocationPolicy.clusterIpv4CidrBlock", "/16", ""),
        (CLUSTER, "enableAutopilot", False, "removeDefaultNodePool"),
        (FIREWALL, "denies", [{"protocol": "tcp"}], "allows"),
        # a property without its partner
        (SQL, "rootPasswordWo", "secret", ""),
        # a group of which none is set
        ("billing/budget:Budget", "amount", {}, ""),
        # an unknown property, a value of another type
        (POOL, "nodeConfig.machine", "a3-highgpu-8g", ""),
        (POOL, "nodeConfig.taints", {"key": "x"}, ""),
    ],
    "documents": [
        # a value that the service does not know
        (CLUSTER, "releaseChannel.channel", "FAST", ""),
        (CLUSTER, "binaryAuthorization.evaluationMode", "ON", ""),
        (CLUSTER, EXCLUSION, "NO_NODES", ""),
        (POOL, "upgradeSettings.strategy", "ROLLING", ""),
        (NETWORK, "routingMode", "ZONAL", ""),
        # a name that does not match the pattern
        (NETWORK, "name", "dev_network", ""),
        (FIREWALL, "name", "Dev", ""),
        # a field that does not exist, at any depth, or is an output
        (CLUSTER, "autopilotMode", True, ""),
        (POOL, "nodeConfig.machine", "a3-highgpu-8g", ""),
        (SQL, "settings.ipConfiguration.privateIp", True, ""),
        (BUCKET, "lifecycleRules[0].condition.ageDays", 7, ""),
        (CLUSTER, "endpoint", "10.0.0.1", ""),
        # a number out of its range, another type
        (POOL, "nodeConfig.diskSizeGb", 2**31, ""),
        (POOL, "initialNodeCount", 1.5, ""),
        (NETWORK, "autoCreateSubnetworks", "no", ""),
        (POOL, "autoscaling", ["x"], ""),
        (CLUSTER, "privateClusterConfig", "private", ""),
    ],
}


@pytest.mark.parametrize(
    ("judge", "mutation"), [(judge, one) for judge, mutations in MUTATIONS.items() for one in mutations]
)
def test_a_mutation_is_refused(judge: str, mutation: tuple[str, str, Any, str], schemas: Schemas) -> None:
    token, path, value, refused = mutation
    inputs = next(properties for kind, _, properties in requested("dev-gcp") if kind == token)
    assert JUDGES[judge](token, inputs, schemas) == []
    said = JUDGES[judge](token, _with(inputs, path, value), schemas)
    assert any(one.startswith(refused or path) for one in said), said


def _with(inputs: Inputs, path: str, value: Any) -> Inputs:
    changed: Any = copy.deepcopy(inputs)
    *above, last = steps(path)
    block = changed
    for step in above:
        block = block.setdefault(step, {}) if isinstance(block, dict) else block[step]
    block[last] = value
    assert isinstance(changed, Mapping)
    return changed
