"""The generated Kueue objects, also against the real CustomResourceDefinitions of the pinned version."""

import json
from collections.abc import Mapping
from typing import Any, cast

import jsonschema
import pytest

from components.kubernetes.charts import charts
from components.kubernetes.queueing import kueue
from components.kubernetes.queueing.quotas import FlavorArgs
from infra.naming import pool_queue
from tests.components.kubernetes.queueing.definitions import ROOT, validate
from tests.components.kubernetes.queueing.objects import FLAVORS, TEAMS, TOPOLOGY, bodies, by_name
from tests.components.kubernetes.queueing.pools import GATE, cpu_flavor, gpu_flavor


def test_every_object_fits_its_definition(crds: Mapping[str, dict[str, Any]]) -> None:
    kinds = set()
    for body in bodies():
        kinds.add(body["kind"])
        validate(crds[body["kind"]], body)
    assert kinds == {
        "Topology",
        "ResourceFlavor",
        "WorkloadPriorityClass",
        "Cohort",
        "ClusterQueue",
        "LocalQueue",
    }


@pytest.mark.parametrize(
    "spoil",
    [
        lambda spec: spec.update(cohort="trainstack"),
        lambda spec: spec["preemption"].update(reclaimWithinCohort="Sometimes"),
        lambda spec: spec["resourceGroups"][0]["flavors"][0].update(name="No Capitals"),
        lambda spec: spec["resourceGroups"][0]["flavors"][0]["resources"][0].update(nominalQuota="many"),
    ],
)
def test_the_definitions_do_refuse(crds: Mapping[str, dict[str, Any]], spoil: Any) -> None:
    queue = by_name("ClusterQueue")["smoke--a100"]
    spoil(queue["spec"])
    with pytest.raises(jsonschema.ValidationError):
        validate(crds["ClusterQueue"], queue)


def test_every_flavor_of_a_queue_lists_the_covered_resources_in_order() -> None:
    # A rule of the API that a JSON schema cannot say.
    for queue in by_name("ClusterQueue").values():
        for group in queue["spec"]["resourceGroups"]:
            for flavor in group["flavors"]:
                assert [resource["name"] for resource in flavor["resources"]] == group["coveredResources"]


def test_references_point_to_objects_of_layers_before() -> None:
    seen: dict[str, set[str]] = {}
    for layer in kueue.layers(FLAVORS, TEAMS, GATE):
        for body in layer:
            spec = body.get("spec", {})
            wanted = {
                "Topology": {spec["topologyName"]} if "topologyName" in spec else set(),
                "ClusterQueue": {spec["clusterQueue"]} if "clusterQueue" in spec else set(),
                "Cohort": {spec["cohortName"]} if "cohortName" in spec else set(),
                "ResourceFlavor": {
                    flavor["name"] for group in spec.get("resourceGroups", []) for flavor in group["flavors"]
                },
            }
            for kind, names in wanted.items():
                assert names <= seen.get(kind, set())
        for body in layer:
            seen.setdefault(body["kind"], set()).add(body["metadata"]["name"])


def test_names_are_sanitised_and_namespaces_follow_them() -> None:
    assert set(by_name("ClusterQueue")) == {"smoke--a100", "team-research-dev", "team-product"}
    queue = by_name("ClusterQueue")["team-research-dev"]
    assert queue["spec"]["namespaceSelector"] == {"matchLabels": {"trainstack.dev/team": "team-research-dev"}}
    local = [body["metadata"] for body in bodies() if body["kind"] == "LocalQueue"]
    assert {(entry["namespace"], entry["name"]) for entry in local} == {
        ("trainstack-smoke", "smoke--a100"),
        ("team-research-dev", "default"),
        ("team-research-dev", "user-queue"),
        ("team-product", "default"),
        ("team-product", "user-queue"),
    }


@pytest.mark.parametrize(("drain", "reclaimed"), [(False, "LowerPriority"), (True, "Any")])
def test_the_gate_waits_for_teams_unless_it_may_drain(drain: bool, reclaimed: str) -> None:
    layers = kueue.layers(FLAVORS, TEAMS, {**GATE, "drain": drain})
    (gate,) = (body for layer in layers for body in layer if body["metadata"]["name"] == "smoke--a100" and
               body["kind"] == "ClusterQueue")  # fmt: skip
    policies = {"withinClusterQueue": "Never", "reclaimWithinCohort": reclaimed}
    assert gate["spec"]["preemption"] == policies
    assert gate["spec"]["queueingStrategy"] == "StrictFIFO", "it keeps what becomes idle"


def test_the_gate_lends_what_it_owns_and_borrows_nothing() -> None:
    spec = by_name("ClusterQueue")["smoke--a100"]["spec"]
    amounts = {
        flavor["name"]: {entry["name"]: entry for entry in flavor["resources"]}
        for flavor in spec["resourceGroups"][0]["flavors"]
    }
    assert amounts["a100"]["nvidia.com/gpu"] == {
        "name": "nvidia.com/gpu",
        "nominalQuota": "16",
        "borrowingLimit": "0",
    }
    assert amounts["a100"]["memory"]["nominalQuota"] == "2000Gi"
    assert "lendingLimit" not in amounts["a100"]["nvidia.com/gpu"]
    assert list(amounts) == ["a100"]


def test_scheduled_validations_own_nothing_and_are_preempted_first(
    crds: Mapping[str, dict[str, Any]],
) -> None:
    layers = list(kueue.layers(FLAVORS, TEAMS, {**GATE, "scheduled": True}))
    found = {(body["kind"], body["metadata"]["name"]): body for layer in layers for body in layer}
    queue = found["ClusterQueue", "smoke-schedule"]
    validate(crds["ClusterQueue"], queue)
    spec = queue["spec"]
    assert spec["fairSharing"] == {"weight": "0"}
    assert spec["preemption"] == {"withinClusterQueue": "Never", "reclaimWithinCohort": "Never"}
    rows = [row for flavor in spec["resourceGroups"][0]["flavors"] for row in flavor["resources"]]
    assert {row["nominalQuota"] for row in rows} == {"0", "0Gi"}
    assert not any("borrowingLimit" in row for row in rows), "what is idle may be used"
    local = found["LocalQueue", "smoke-schedule"]
    assert local["metadata"]["namespace"] == "trainstack-smoke"
    gate = found["ClusterQueue", "smoke--a100"]
    values = {body["metadata"]["name"]: body["value"] for body in kueue.priority_classes()}
    assert gate["spec"]["preemption"]["reclaimWithinCohort"] == "LowerPriority"
    assert values["background"] < values["validation"], "a deploy waits for no schedule"
    assert gate == by_name("ClusterQueue")["smoke--a100"] and "smoke-schedule" not in by_name("ClusterQueue")


def test_teams_get_their_quota_back_and_share_idle_quota_by_weight() -> None:
    spec = by_name("ClusterQueue")["team-research-dev"]["spec"]
    assert spec["preemption"] == {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
    assert spec["fairSharing"] == {"weight": "3"}
    assert by_name("ClusterQueue")["team-product"]["spec"]["fairSharing"] == {"weight": "0.5"}
    assert spec["cohortName"] == kueue.COHORT


def order(*flavors: FlavorArgs) -> list[str]:
    (group,) = by_name("ClusterQueue", list(flavors))["team-product"]["spec"]["resourceGroups"]
    return [flavor["name"] for flavor in group["flavors"]]


def priced(name: str, usd_per_hour: float) -> FlavorArgs:
    return {**gpu_flavor(name), "usd_per_hour": usd_per_hour}


def test_jobs_try_the_cheapest_flavor_first() -> None:
    gate = gpu_flavor()  # its price is unknown
    dear, spot, cheap = priced("dear", 32.77), priced("spot", 9.8), priced("cheap", 0.98)
    assert order(gate, dear, spot, cheap, {**cpu_flavor(), "usd_per_hour": 99.0}) == [
        "cpu", "cheap", "spot", "dear", "a100",
    ]  # fmt: skip
    assert order(gate, dear, {**spot, "usd_per_hour": 32.77}) == ["dear", "spot", "a100"], "declared order"
    assert order(gate, dear, {**spot, "preference": 1}, cheap) == ["cheap", "dear", "a100", "spot"]


def test_a_flavor_with_a_queue_of_its_own_is_in_no_other_queue_of_a_team() -> None:
    dear: FlavorArgs = {**gpu_flavor("H100 block", adapters=32), "own_queue": True}
    queues = by_name("ClusterQueue", [gpu_flavor(), dear, cpu_flavor()])
    own, shared = queues["team-research-dev--h100-block"]["spec"], queues["team-research-dev"]["spec"]
    flavors = {
        name: [flavor["name"] for group in spec["resourceGroups"] for flavor in group["flavors"]]
        for name, spec in {"own": own, "shared": shared, "gate": queues["smoke--a100"]["spec"]}.items()
    }
    assert flavors == {
        "own": ["h100-block"], "shared": ["cpu", "a100"], "gate": ["a100"],
    }  # fmt: skip
    keys = own.keys() - {"resourceGroups"}
    assert {key: own[key] for key in keys} == {key: shared[key] for key in keys}
    local = [body for body in bodies([gpu_flavor(), dear]) if body["kind"] == "LocalQueue"]
    doors = {
        body["metadata"]["name"]: body["spec"]["clusterQueue"]
        for body in local
        if body["metadata"]["namespace"] == "team-research-dev"
    }
    assert doors == {
        "default": "team-research-dev",
        "user-queue": "team-research-dev",
        "h100-block": "team-research-dev--h100-block",
    }


def test_only_the_teams_of_a_pool_have_a_queue_for_it() -> None:
    alone: FlavorArgs = {**gpu_flavor("notebooks"), "own_queue": True, "shared": True}
    shares: FlavorArgs = {**alone, "teams": ["Research & Dev"]}
    made = bodies([gpu_flavor(), shares])
    doors = {
        body["metadata"]["namespace"]
        for body in made
        if body["kind"] == "LocalQueue" and body["metadata"]["name"] == "notebooks"
    }
    assert doors == {"team-research-dev"}
    holders = {
        body["metadata"]["name"]
        for body in made
        if body["kind"] == "ClusterQueue" and '"notebooks"' in json.dumps(body)
    }
    assert holders == {"team-research-dev--notebooks"}, "scheduled validations measure whole GPUs"
    flavor = by_name("ResourceFlavor", [gpu_flavor(), shares])["notebooks"]
    assert flavor["metadata"]["annotations"] == {"trainstack.dev/teams": "team-research-dev"}


def test_names_of_queues_stay_labels_however_long_those_of_team_and_pool_are() -> None:
    names = {pool_queue("x" * 60, f"{'y' * 60}{end}") for end in "ab"}
    assert len(names) == 2 and max(map(len, names)) == 63


def test_a_team_borrows_before_it_pays_more_and_pays_more_before_it_preempts() -> None:
    spec = by_name("ClusterQueue")["team-product"]["spec"]
    assert spec["flavorFungibility"] == {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"}
    covered = spec["resourceGroups"][0]["coveredResources"]
    assert covered == ["cpu", "memory", "nvidia.com/gpu", "vpc.amazonaws.com/efa"]


def test_adapters_are_covered_only_where_some_pool_has_it() -> None:
    plain = [gpu_flavor(adapters=0)]
    groups = by_name("ClusterQueue", plain)["smoke--a100"]["spec"]["resourceGroups"]
    assert groups[0]["coveredResources"] == ["cpu", "memory", "nvidia.com/gpu"]


def test_flavors_bind_jobs_to_their_pool() -> None:
    flavors = by_name("ResourceFlavor")
    assert flavors["a100"]["spec"] == {
        "nodeLabels": {"trainstack.dev/pool": "a100"},
        "nodeTaints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
    }
    assert flavors["cpu"]["spec"] == {"nodeLabels": {"trainstack.dev/pool": "cpu"}}
    (topology,) = by_name("Topology").values()
    assert flavors["h100"]["spec"]["topologyName"] == topology["metadata"]["name"]
    assert topology["spec"]["levels"][0] == {"nodeLabel": "topology.k8s.aws/network-node-layer-1"}


def test_pools_with_the_same_layers_share_a_topology() -> None:
    twin: FlavorArgs = {**TOPOLOGY, "name": "h100-b"}
    assert len(by_name("Topology", [gpu_flavor(), TOPOLOGY, twin])) == 1
    other: FlavorArgs = {**twin, "topology": ["kubernetes.io/hostname"]}
    assert len(by_name("Topology", [gpu_flavor(), TOPOLOGY, other])) == 2


def test_a_validation_ranks_below_the_work_of_teams_and_above_its_own_repetition() -> None:
    values = {body["metadata"]["name"]: body["value"] for body in kueue.priority_classes()}
    assert sorted(values, key=values.__getitem__, reverse=True) == [
        "production",
        "default",
        "sweep",
        "validation",
        "background",
    ]


def test_the_definitions_tested_against_are_those_of_the_chart() -> None:
    module = (ROOT / "tools" / "control-plane" / "go.mod").read_text(encoding="utf-8")
    assert f"sigs.k8s.io/kueue v{charts()['kueue'].version} " in module


def test_every_chart_says_where_it_was_read_and_when() -> None:
    for chart in charts().values():
        assert chart.source
        assert chart.date.year >= 2026
        assert chart.chart.startswith("oci://") != bool(chart.repository)


def test_a_job_without_a_class_ranks_as_one_with_the_default_class() -> None:
    values = {body["metadata"]["name"]: body["value"] for body in kueue.priority_classes()}
    assert values["default"] == 0, "Kueue gives a job without a class 0"


def test_a_queue_counts_what_runs_beside_a_job_on_its_node() -> None:
    sidecar = {"cpu": 4, "memory_gib": 8}
    beside = cast(FlavorArgs, {**gpu_flavor(adapters=0), "pod": {"sidecar": sidecar}})
    queue = by_name("ClusterQueue", [beside])["smoke--a100"]["spec"]["resourceGroups"][0]["flavors"][0]
    quota = {row["name"]: row["nominalQuota"] for row in queue["resources"]}
    assert (quota["cpu"], quota["memory"]) == (str(2 * 94), f"{2 * 1008}Gi")


def test_adapters_that_go_with_their_node_are_in_no_quota() -> None:
    uncounted = cast(
        FlavorArgs, {**gpu_flavor(), "fabric": {"kind": "rdma", "count": 8, "pod_resources": {"x/y": "1"}}}
    )
    groups = by_name("ClusterQueue", [uncounted])["smoke--a100"]["spec"]["resourceGroups"]
    assert groups[0]["coveredResources"] == ["cpu", "memory", "nvidia.com/gpu"]
