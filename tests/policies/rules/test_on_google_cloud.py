"""Rules on resources of Google Cloud: variants beyond the recorded examples."""

from typing import Any

import pytest

from policies.evaluate import evaluate
from policies.resource import Resource, UnknownValue
from policies.rules import CATALOG
from policies.stack import Stack
from tests.policies.rules.judging import ask, judged, made, results

NETWORK, SUBNETWORK = "gcp:compute/network:Network", "gcp:compute/subnetwork:Subnetwork"
LUSTRE, GKE, POOL = (
    "gcp:lustre/instance:Instance",
    "gcp:container/cluster:Cluster",
    "gcp:container/nodePool:NodePool",
)
MEMBER, SINK = "gcp:projects/iAMMember:IAMMember", "gcp:logging/projectSink:ProjectSink"
LOG_BUCKET = "gcp:logging/projectBucketConfig:ProjectBucketConfig"
BUDGET, CUSTOM = "gcp:billing/budget:Budget", "gcp:projects/iAMCustomRole:IAMCustomRole"
LATER = "is not known before the deployment"


def planned(kind: str, references: dict[str, list[str]] | None = None, **props: Any) -> Resource:
    return Resource(kind, "urn:it", "it", props=props, references=references or {}, origin="planned")


@pytest.mark.parametrize(
    ("network", "subnetwork", "expected"),
    [
        ({"networkProfile": "projects/p/global/networkProfiles/z-vpc-roce"}, {}, "not-applicable"),
        ({}, {}, "fail"),
        ({"networkProfile": "x"}, {"logConfig": {"flowSampling": 0.5}}, "pass"),
        ({"networkProfile": ""}, {}, "fail"),
    ],
)
def test_networks_of_rdma_have_no_flow_logs(network: Any, subnetwork: Any, expected: str) -> None:
    net = made(NETWORK, "rdma", **network)
    assert results("MLS-NET-08", net, made(SUBNETWORK, "sub", network="rdma", **subnetwork)) == [expected]


def test_the_profile_of_a_network_elsewhere_excuses_nothing() -> None:
    assert results("MLS-NET-08", made(SUBNETWORK, "sub", network="projects/p/global/networks/n")) == ["fail"]


KEY = {"kmsKey": "projects/p/locations/l/keyRings/r/cryptoKeys/k"}
WITH_KEY = Resource(LUSTRE, "urn:it", "it", props=KEY, asked=KEY)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([made(LUSTRE)], "fail"),
        ([made(LUSTRE), made(GKE, "train")], "not-applicable"),
        ([WITH_KEY, made(GKE, "train")], "pass"),
        (
            [
                made("aws:fsx/lustreFileSystem:LustreFileSystem", deploymentType="PERSISTENT_2"),
                made(GKE, "g"),
            ],
            "fail",
        ),
    ],
)
def test_lustre_for_gke_takes_no_key(resources: list[Resource], expected: str) -> None:
    assert results("MLS-STO-05", *resources) == [expected]


def pool(config: dict[str, Any], **more: Any) -> Resource:
    given = {"machineType": "a3-megagpu-8g", "gvnic": {"enabled": True}, **config}
    return made(POOL, "pool", autoscaling={"totalMaxNodeCount": 8}, nodeConfig=given, **more)


RESERVED = {"reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION"}}


@pytest.mark.parametrize(
    ("machines", "expected"),
    [
        (pool({}), "fail"),
        (pool({}, placementPolicy={"type": "COMPACT"}), "pass"),
        (pool({"flexStart": True}), "not-applicable"),
        (pool({}, queuedProvisioning={"enabled": True}), "not-applicable"),
        (pool(RESERVED), "not-applicable"),
        (pool({"reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}}), "fail"),
        (pool({"reservationAffinity": {"consumeReservationType": "ANY_RESERVATION"}}), "fail"),
    ],
)
def test_where_nodes_are_may_be_decided_already(machines: Resource, expected: str) -> None:
    assert results("MLS-NET-10", machines) == [expected]


@pytest.mark.parametrize(
    ("machine", "expected"),
    [("a3-megagpu-8g", "fail nodePools[1].placementPolicy.type"), ("e2-medium", "not-applicable")],
)
def test_pools_inside_of_a_cluster_are_close_too(machine: str, expected: str) -> None:
    gpus = {"nodeConfig": {"machineType": machine, "gvnic": {"enabled": True}}, "nodeCount": 4}
    small = {"nodeConfig": {"machineType": "e2-medium"}, "nodeCount": 4}
    assert judged("MLS-NET-10", made(GKE, nodePools=[small, gpus])) == {"it": expected}
    assert judged("MLS-NET-10", made(GKE, removeDefaultNodePool=True)) == {"it": "not-applicable"}


def test_what_is_placed_already_still_needs_its_network_card() -> None:
    found = ask("MLS-NET-10", pool({**RESERVED, "gvnic": {}}))
    assert [(one.result, one.path) for one in found] == [
        ("fail", "nodeConfig.gvnic.enabled"),
        ("not-applicable", ""),
    ]


def test_whose_role_is_small_need_not_be_known() -> None:
    unknown = UnknownValue("member", LATER)
    assert results("MLS-IAM-01", planned(MEMBER, role="roles/viewer", member=unknown)) == ["pass"]
    assert results("MLS-IAM-01", planned(MEMBER, role="roles/owner", member=unknown)) == ["undetermined"]


def test_a_role_of_the_stacks_own_is_neither_owner_nor_editor() -> None:
    urn = f"urn:pulumi:dev::app::{CUSTOM}::role"
    role = Resource(CUSTOM, urn, "role")
    mine = planned(MEMBER, {"role": [urn]}, role=UnknownValue("role", LATER), member="user:a@example.com")
    assert results("MLS-IAM-01", role, mine) == ["pass"]
    from_elsewhere = planned(MEMBER, role=UnknownValue("role", LATER), member="user:a@example.com")
    assert results("MLS-IAM-01", role, from_elsewhere) == ["undetermined"]


@pytest.mark.parametrize(("location", "expected"), [("us-east1", "pass"), ("global", "fail")])
def test_a_sink_ends_where_its_log_bucket_is(location: str, expected: str) -> None:
    bucket = Resource(LOG_BUCKET, "urn:bucket", "bucket", props={"location": location})
    sink = planned(SINK, {"destination": ["urn:bucket"]}, destination=UnknownValue("destination", LATER))
    assert results("MLS-RES-02", bucket, sink, made(GKE, "train", location="us-east1")) == [expected]


CHANNELS = {
    "monitoringNotificationChannels": [UnknownValue("channel", LATER)],
    "disableDefaultIamRecipients": True,
}


def test_a_budget_with_an_unknown_channel_has_a_receiver() -> None:
    thresholds = [
        {"thresholdPercent": 0.8, "spendBasis": basis} for basis in ("CURRENT_SPEND", "FORECASTED_SPEND")
    ]
    topic = {"pubsubTopic": UnknownValue("allUpdatesRule.pubsubTopic", LATER)}
    for rule in ("MLS-COST-01", "MLS-COST-04"):
        for reported in ({**CHANNELS, **topic}, topic):
            budget = planned(BUDGET, allUpdatesRule=reported, thresholdRules=thresholds)
            assert results(rule, budget, pool({})) == ["pass"]
        alone = planned(
            BUDGET, allUpdatesRule={**topic, "disableDefaultIamRecipients": True}, thresholdRules=thresholds
        )
        assert results(rule, alone, pool({})) == ["undetermined"]


IMAGE = "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.22"


@pytest.mark.parametrize(
    ("image", "named", "said"),
    [
        (IMAGE, (), "fail spec.containers[0].image"),
        (IMAGE, (IMAGE,), "pass"),
        (IMAGE.replace("22", "23"), (IMAGE,), "fail spec.containers[0].image"),
        (IMAGE.rpartition(":")[0], (IMAGE,), "fail spec.containers[0].image"),
        ("docker.io/library/torch:2", ("docker.io/library/torch:2",), "fail spec.containers[0].image"),
    ],
)
def test_an_image_by_version_must_be_listed(image: str, named: tuple[str, ...], said: str) -> None:
    workload = made("kubernetes:core/v1:Pod", spec={"containers": [{"name": "train", "image": image}]})
    assert judged("MLS-REP-01", workload, images_by_version=named) == {"it": said}


def test_a_map_of_another_namespace_says_nothing_about_who_is_who() -> None:
    def settings(**about: Any) -> Resource:
        return planned("kubernetes:core/v1:ConfigMap", metadata=about, data={"mapRoles": "system:masters"})

    later = UnknownValue("metadata.name", LATER)
    rule = CATALOG.rules["MLS-IAM-06"]
    found = {
        name: evaluate(Stack([one]), [rule])[0].result
        for name, one in {
            "elsewhere": settings(name="aws-auth", namespace="smoke"),
            "unnamed elsewhere": settings(name=later, namespace="smoke"),
            "unnamed there": settings(name=later, namespace="kube-system"),
            "somewhere": settings(name="aws-auth", namespace=UnknownValue("metadata.namespace", LATER)),
            "there": settings(name="aws-auth", namespace="kube-system"),
        }.items()
    }
    assert found == {
        "elsewhere": "not-applicable",
        "unnamed elsewhere": "not-applicable",
        "unnamed there": "undetermined",
        "somewhere": "undetermined",
        "there": "fail",
    }
