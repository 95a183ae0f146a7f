"""Requests of the shipped stacks on Google Cloud, with ids in the form of the provider's."""

import functools
import json
from collections.abc import Mapping
from typing import Any

import pulumi

from infra import stackspec
from infra.stackspec.document import read
from rehearsal.core.validate import SIGNATURE
from stacks import compose
from tests.components.gcp.computed import COMPUTED, PROJECT
from tests.components.graph import Computed, deploy_graph
from tests.stacks.composition.composed import CONFIG, STACK

STACKS = ("dev-gcp", "prod-gcp", "small-gcp", "small-gke-gcp")
_PACKAGE = "gcp:"
# Stand-ins for outputs that the provider judges where another resource uses them.
_ISSUED: Computed = {
    **COMPUTED,
    "gcp:serviceaccount/account:Account": lambda args: {
        **COMPUTED["gcp:serviceaccount/account:Account"](args),
        "name": f"projects/{PROJECT}/serviceAccounts/"
        f"{args.inputs['accountId']}@{PROJECT}.iam.gserviceaccount.com",
    },
}
# What comes before the name in an id, by type.
_LINKS = {
    f"{_PACKAGE}compute/network:Network": "global/networks",
    f"{_PACKAGE}kms/cryptoKey:CryptoKey": "locations/us-central1/keyRings/r/cryptoKeys",
}

Requested = tuple[str, str, Mapping[str, Any]]


@functools.cache
def requested(stack: str) -> tuple[Requested, ...]:
    """(type without its package, name, properties) of every resource of a shipped stack."""
    return composed(loaded(stack))


def loaded(stack: str) -> stackspec.StackSpec:
    """The spec of a shipped stack."""
    file = f"Pulumi.{stack}.yaml"
    plain = json.loads(json.dumps(read(CONFIG / file, file)))
    settings = {key.partition(":")[2]: value for key, value in plain["config"].items()}
    return stackspec.load(STACK, settings, file).spec


def composed(spec: stackspec.StackSpec) -> tuple[Requested, ...]:
    """(type without its package, name, properties) of every resource of a spec."""
    graph = deploy_graph(lambda: compose(spec), _ISSUED)
    asked = [one for one in graph.cloud.asked if one.type.startswith(_PACKAGE)]
    # The recorder's ids of networks and keys are no links, and the provider asks for links.
    links = {
        f"{one.name}-id": f"projects/{PROJECT}/{_LINKS[one.type]}/{one.name}"
        for one in asked
        if one.type in _LINKS
    }
    return tuple((one.type.removeprefix(_PACKAGE), one.name, _linked(one.properties, links)) for one in asked)


def _linked(value: Any, links: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        if SIGNATURE in value:  # a secret
            return _linked(value["value"], links)
        return {name: _linked(item, links) for name, item in value.items()}
    if isinstance(value, list):
        return [_linked(item, links) for item in value]
    if isinstance(value, pulumi.Asset | pulumi.Archive):
        return {SIGNATURE: ""}
    return links.get(value, value) if isinstance(value, str) else value
