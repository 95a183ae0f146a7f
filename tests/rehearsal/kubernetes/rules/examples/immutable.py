"""Immutable fields of existing objects."""

from types import MappingProxyType

from rehearsal.core.model import Properties
from rehearsal.kubernetes.rules.book import (
    CLAIM,
    CONFIG_MAP,
    DEPLOYMENT,
    JOB,
    QUOTA,
    SECRET,
    SERVICE,
    STATEFUL_SET,
    VOLUME,
)
from rehearsal.kubernetes.rules.objects.access import BINDING
from rehearsal.kubernetes.rules.objects.custom import DEFINITION
from rehearsal.kubernetes.rules.objects.kueue import CHECK, LOCAL_QUEUE, TOPOLOGY
from rehearsal.kubernetes.rules.objects.storage import CLASS
from rehearsal.kubernetes.rules.pods.scheduling import PRIORITY_CLASS
from tests.rehearsal.kubernetes.rules.building import Changes, Example, deployment, job, named, spaced
from tests.rehearsal.kubernetes.rules.examples.custom import KUEUE, LEVELS, MINE
from tests.rehearsal.kubernetes.rules.examples.objects import BOUND, CLAIMED, CLASSED, PV, SEALED, WEB

DEVICES = "kubernetes:resource.k8s.io/v1:ResourceClaimTemplate"
DEVICE = {"name": "efa", "exactly": {"deviceClassName": "efa.example.com"}}


def fixed(
    number: int, token: str, base: Properties, bad: Changes, path: str, *,
    good: Changes = MappingProxyType({}),
) -> Example:  # fmt: skip
    """The object exists as `base`: unchanged it is accepted, changed it is refused."""
    custom = "kueue" in token
    world = [*([KUEUE] if custom else []), (token, base)]
    return Example(f"K8S-IMM-{number:03}", token, base, bad, path, good, world, custom)


EXAMPLES = [
    fixed(
        1,
        DEPLOYMENT,
        deployment(),
        {"spec.selector.matchLabels.tier": "a", "spec.template.metadata.labels.tier": "a"},
        "spec.selector",
    ),
    fixed(2, STATEFUL_SET, deployment(serviceName="a"), {"spec.serviceName": "b"}, "spec.serviceName"),
    fixed(3, JOB, job(), {"spec.template.spec.containers.0.image": "b"}, "spec.template"),
    fixed(
        4,
        SERVICE,
        {**WEB, "spec": {**WEB["spec"], "clusterIP": "10.96.7.1"}},
        {"spec.clusterIP": "10.96.7.2"},
        "spec.clusterIP",
    ),
    fixed(5, CLAIM, CLAIMED, {"spec.accessModes": ["ReadWriteMany"]}, "spec.accessModes"),
    fixed(6, VOLUME, PV, {"spec.csi.driver": "e"}, "spec.csi"),
    fixed(7, CLASS, CLASSED, {"parameters.type": "io2"}, "parameters"),
    fixed(
        8,
        PRIORITY_CLASS,
        named(value=10),
        {"value": 20},
        "value",
        good={"preemptionPolicy": "PreemptLowerPriority"},
    ),
    fixed(9, BINDING, BOUND, {"roleRef.name": "s"}, "roleRef"),
    fixed(10, SECRET, spaced(type="Opaque"), {"type": "example.com/other"}, "type"),
    fixed(11, QUOTA, spaced(spec={"hard": {"pods": "1"}}), {"spec.scopes": ["BestEffort"]}, "spec.scopes"),
    fixed(15, CONFIG_MAP, SEALED, {"data": {"a": "2"}}, "data"),
    fixed(
        12, LOCAL_QUEUE, spaced(spec={"clusterQueue": "a"}), {"spec.clusterQueue": "b"}, "spec.clusterQueue"
    ),
    fixed(13, TOPOLOGY, LEVELS, {"spec.levels.0.nodeLabel": "a/rack"}, "spec.levels"),
    fixed(
        14, CHECK, named(spec={"controllerName": "a"}), {"spec.controllerName": "b"}, "spec.controllerName"
    ),
    fixed(16, DEFINITION, MINE, {"spec.scope": "Cluster"}, "spec.scope"),
    fixed(
        17,
        DEVICES,
        spaced(spec={"spec": {"devices": {"requests": [DEVICE]}}}),
        {"spec.spec.devices.requests": []},
        "spec",
    ),
]
