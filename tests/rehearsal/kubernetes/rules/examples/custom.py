"""Custom resources, and Kueue's."""

from typing import Any

from components.kubernetes.queueing.kueue_values import MANAGED, MANAGED_LABEL
from rehearsal.kubernetes.rules.book import JOB, NAMESPACE
from rehearsal.kubernetes.rules.objects.custom import DEFINITION
from rehearsal.kubernetes.rules.objects.kueue import COHORT, FLAVOR, QUEUE, TOPOLOGY
from tests.rehearsal.kubernetes.rules.building import GONE, Changes, Example, but, job, named

KUEUE = (
    "kubernetes:helm.sh/v3:Release",
    {
        "chart": "oci://registry.k8s.io/kueue/charts/kueue",
        "name": "kueue",
        "namespace": "kueue-system",
    },
)
QUEUE_LABEL, PRIORITY_LABEL = "kueue~x-k8s~io/queue-name", "kueue~x-k8s~io/priority-class"
FLAVORS = "spec.resourceGroups.0.flavors"
ROW, AT = f"{FLAVORS}.0.resources.0", "spec.resourceGroups[0].flavors[0].resources[0]"


def flavor(name: str = "a100", cpu: str = "8") -> dict[str, Any]:
    return {"name": name, "resources": [{"name": "cpu", "nominalQuota": cpu}]}


def queue(**spec: Any) -> dict[str, Any]:
    return named(spec={"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor()]}], **spec})


def kueue(number: int, token: str, base: dict[str, Any], bad: Changes, path: str, **more: Any) -> Example:
    world = [KUEUE, *more.pop("world", ())]
    return Example(f"K8S-KUEUE-{number:03}", token, base, bad, path, world=world, custom=True, **more)


LEVELS = named(spec={"levels": [{"nodeLabel": "a/block"}, {"nodeLabel": "kubernetes.io/hostname"}]})
TOPOLOGICAL = named(spec={"nodeLabels": {"pool": "a"}, "topologyName": "t"})
SHAPE = {"openAPIV3Schema": {"type": "object"}}
MINE = named(
    "widgets.example.com",
    spec={
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": SHAPE}],
    },
)
COHORTED = queue(cohortName="all")
SHARED = named(spec={"parentName": "all", "fairSharing": {"weight": "2"}})
WATCHED = (NAMESPACE, {"metadata": {"name": "lab", "labels": {MANAGED_LABEL: MANAGED}}})
QUEUED = but(job(), {f"metadata.labels.{name}": "a" for name in (QUEUE_LABEL, PRIORITY_LABEL)})

EXAMPLES = [
    Example("K8S-CRD-001", DEFINITION, MINE, {"metadata.name": "widget.example.com"}, "metadata.name"),
    Example(
        "K8S-CRD-005",
        DEFINITION,
        MINE,
        {"spec.versions.0.schema": {}},
        "spec.versions[0].schema.openAPIV3Schema",
    ),
    Example(
        "K8S-CRD-006",
        DEFINITION,
        MINE,
        {"spec.names.shortNames": ["W"]},
        "spec.names.shortNames[0]",
        {"spec.names.shortNames": ["w"]},
    ),
    Example(
        "K8S-CRD-007",
        DEFINITION,
        MINE,
        {"spec.versions.0.name": "v2"},
        "status.storedVersions",
        {"spec.versions.1": {**MINE["spec"]["versions"][0], "name": "v2", "storage": False}},
        [(DEFINITION, MINE)],
    ),
    Example(
        "K8S-CRD-008",
        COHORT,
        SHARED,
        {"spec.fairSharing": {}},
        "spec.fairSharing",
        {"spec.fairSharing": GONE},
        [KUEUE, (COHORT, SHARED)],
        custom=True,
    ),
    Example("K8S-CRD-002", DEFINITION, MINE, {"spec.versions.0.storage": False}, "spec.versions"),
    Example("K8S-CRD-004", QUEUE, queue(), {"spec.cohort": "all"}, "spec.cohort", world=[KUEUE], custom=True),
    kueue(
        1,
        QUEUE,
        queue(),
        {"spec.resourceGroups.1": {"coveredResources": ["cpu"], "flavors": [flavor("b")]}},
        "spec.resourceGroups[1].coveredResources[0]",
    ),
    kueue(
        2,
        QUEUE,
        queue(),
        {
            "spec.resourceGroups.1": {
                "coveredResources": ["memory"],
                "flavors": [{"name": "a100", "resources": [{"name": "memory", "nominalQuota": "1Gi"}]}],
            }
        },
        "spec.resourceGroups[1].flavors[0].name",
    ),
    kueue(3, QUEUE, queue(), {f"{ROW}.name": "memory"}, f"{AT}.name"),
    kueue(
        4,
        QUEUE,
        queue(),
        {f"{ROW}.borrowingLimit": "1"},
        f"{AT}.borrowingLimit",
        good={f"{ROW}.borrowingLimit": "1", "spec.cohortName": "all"},
    ),
    kueue(
        5,
        QUEUE,
        COHORTED,
        {f"{ROW}.lendingLimit": "9"},
        f"{AT}.lendingLimit",
        good={f"{ROW}.lendingLimit": "8"},
    ),
    kueue(6, QUEUE, queue(), {f"{ROW}.nominalQuota": "-1"}, f"{AT}.nominalQuota"),
    kueue(
        7,
        QUEUE,
        COHORTED,
        {
            "spec.preemption": {
                "reclaimWithinCohort": "Never",
                "borrowWithinCohort": {"policy": "LowerPriority"},
            }
        },
        "spec.preemption",
        good={
            "spec.preemption": {
                "reclaimWithinCohort": "Any",
                "borrowWithinCohort": {"policy": "LowerPriority"},
            }
        },
    ),
    kueue(
        8,
        QUEUE,
        queue(),
        {"spec.flavorFungibility": {"preference": "BorrowingOverPreemption"}},
        "spec.flavorFungibility.preference",
        good={
            "spec.flavorFungibility": {
                "preference": "BorrowingOverPreemption",
                "whenCanBorrow": "TryNextFlavor",
            }
        },
    ),
    kueue(
        9,
        COHORT,
        named(spec={"fairSharing": {"weight": "2"}}),
        {"spec.fairSharing.weight": "-2"},
        "spec.fairSharing",
    ),
    kueue(
        10,
        QUEUE,
        queue(),
        {
            "spec.resourceGroups": [
                {
                    "coveredResources": [f"r{group}.io/{number}" for number in range(52)],
                    "flavors": [
                        {
                            "name": f"f{group}",
                            "resources": [
                                {"name": f"r{group}.io/{number}", "nominalQuota": "1"} for number in range(52)
                            ],
                        }
                    ],
                }
                for group in range(5)
            ]
        },
        "spec.resourceGroups",
    ),
    kueue(
        11,
        QUEUE,
        queue(),
        {"spec.admissionChecksStrategy": {"admissionChecks": [{"name": "c", "onFlavors": ["h100"]}]}},
        "spec.admissionChecksStrategy.admissionChecks[0].onFlavors[0]",
        good={"spec.admissionChecksStrategy": {"admissionChecks": [{"name": "c", "onFlavors": ["a100"]}]}},
    ),
    kueue(
        12,
        FLAVOR,
        named(spec={"nodeTaints": [{"key": "a", "effect": "NoSchedule"}]}),
        {"spec.nodeTaints.1": {"key": "a", "effect": "NoSchedule"}},
        "spec.nodeTaints[1]",
    ),
    kueue(
        13,
        FLAVOR,
        named(spec={"tolerations": [{"key": "a", "operator": "Exists"}]}),
        {"spec.tolerations.0.value": "b"},
        "spec.tolerations[0].operator",
    ),
    kueue(14, FLAVOR, TOPOLOGICAL, {"spec.nodeLabels": GONE}, "spec"),
    kueue(
        15,
        FLAVOR,
        TOPOLOGICAL,
        {"spec.nodeLabels": {"pool": "b"}},
        "spec.nodeLabels",
        world=[(FLAVOR, TOPOLOGICAL)],
    ),
    kueue(16, TOPOLOGY, LEVELS, {"spec.levels.2": {"nodeLabel": "a/rack"}}, "spec.levels"),
    Example(
        "K8S-KUEUE-017",
        JOB,
        QUEUED,
        {f"metadata.labels.{QUEUE_LABEL}": "A"},
        "metadata.labels[kueue.x-k8s.io/queue-name]",
        world=[KUEUE, WATCHED],
    ),
    Example(
        "K8S-KUEUE-018",
        JOB,
        QUEUED,
        {f"metadata.labels.{PRIORITY_LABEL}": GONE},
        "metadata.labels[kueue.x-k8s.io/priority-class]",
        {f"metadata.labels.{QUEUE_LABEL}": "b", "spec.suspend": True},
        [KUEUE, WATCHED, (JOB, QUEUED)],
    ),
]
