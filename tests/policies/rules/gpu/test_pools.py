"""The rules GPU on what is configured in other ways than in their examples."""

import base64
from typing import Any

import pytest

from policies.resource import Resource, UnknownValue
from tests.policies.rules.judging import judged, made

GROUP, TEMPLATE = "aws:eks/nodeGroup:NodeGroup", "aws:ec2/launchTemplate:LaunchTemplate"
POOL, GKE = "gcp:container/nodePool:NodePool", "gcp:container/cluster:Cluster"
RELEASE, ALARM = "kubernetes:helm.sh/v3:Release", "aws:cloudwatch/metricAlarm:MetricAlarm"
T4 = {"machineType": "n1-standard-8", "guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 4}]}


def group(machine: str = "p4d.24xlarge", least: int = 0, most: int = 4, **props: Any) -> Resource:
    sizes = {"minSize": least, "maxSize": most, "desiredSize": least}
    return made(GROUP, **{"instanceTypes": [machine], "scalingConfig": sizes, **props})


def test_a_machine_that_the_catalog_does_not_know_is_known_by_its_family() -> None:
    assert judged("MLS-GPU-01", group("trn1.32xlarge")) == {"it": "fail instanceTypes[0]"}
    assert judged("MLS-GPU-01", group("trn1.32xlarge"), allowed_accelerators={"trn1"}) == {"it": "pass"}
    assert judged("MLS-GPU-01", group("m7i.large")) == {"it": "not-applicable"}
    assert judged("MLS-GPU-02", group("trn1.32xlarge")) == {"": "undetermined"}


def test_a_launch_template_is_judged_once() -> None:
    template = made(TEMPLATE, "lt", instanceType="g4dn.xlarge")
    named = group(instanceTypes=[], launchTemplate={"id": "lt", "version": "1"})
    assert judged("MLS-GPU-01", template, named) == {"lt": "fail instanceType", "it": "not-applicable"}
    assert judged("MLS-GPU-01", named) == {"it": "undetermined"}
    assert judged("MLS-GPU-01", group(instanceTypes=[])) == {"it": "not-applicable"}


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"acceleratorTypes": ["gpu"]}, "fail instanceRequirements"),
        ({"acceleratorCount": {"min": 1}}, "fail instanceRequirements"),
        ({"acceleratorNames": ["l4"]}, "pass"),
        ({"acceleratorNames": ["k80"]}, "fail instanceRequirements.acceleratorNames[0]"),
        ({"allowedInstanceTypes": ["g6.xlarge"], "acceleratorCount": {"min": 1}}, "pass"),
        ({"vcpuCount": {"min": 4}, "acceleratorCount": {"max": 0}}, "not-applicable"),
    ],
)
def test_a_template_can_name_what_it_requires(wanted: dict[str, Any], said: str) -> None:
    assert judged("MLS-GPU-01", made(TEMPLATE, instanceRequirements=wanted)) == {"it": said}


def test_node_auto_provisioning_starts_machines_too() -> None:
    limits = [{"resourceType": "cpu", "maximum": 9}, {"resourceType": "nvidia-tesla-t4", "maximum": 4}]
    cluster = made(GKE, enableAutopilot=True, clusterAutoscaling={"enabled": True, "resourceLimits": limits})
    assert judged("MLS-GPU-01", cluster) == {"it": "fail clusterAutoscaling.resourceLimits[1]"}


def test_pools_that_are_written_into_their_cluster() -> None:
    inline = made(GKE, location="us-central1-a", nodePools=[{"name": "a", "nodeConfig": T4, "nodeCount": 2}])
    assert judged("MLS-GPU-01", inline) == {"it": "fail nodePools[0].nodeConfig.guestAccelerators[0]"}
    assert judged("MLS-GPU-04", inline) == {"it": "fail nodePools[0].nodeCount"}
    default = made(GKE, location="us-central1-a", nodeConfig=T4, initialNodeCount=1)
    assert judged("MLS-GPU-04", default) == {"it": "fail initialNodeCount"}


def test_a_cluster_read_back_does_not_count_its_pools_twice() -> None:
    pool = made(POOL, "p", name="a", cluster="gke", location="us-central1-a", nodeConfig=T4, nodeCount=2)
    cluster = made(
        GKE, "gke", name="gke", nodePools=[{"name": "a", "nodeConfig": T4, "nodeCount": 2}], nodeConfig=T4
    )
    assert judged("MLS-GPU-02", pool, cluster, max_accelerators=8) == {"": "pass"}
    assert judged("MLS-GPU-02", pool, cluster, max_accelerators=7) == {"": "fail"}
    assert judged("MLS-GPU-04", pool, cluster) == {"p": "fail nodeCount", "gke": "not-applicable"}


@pytest.mark.parametrize(
    ("place", "zones"),
    [
        ({"location": "us-central1-a"}, 1),
        ({"location": "us-central1"}, 3),
        ({"location": "us-central1", "nodeLocations": ["us-central1-a", "us-central1-b"]}, 2),
    ],
)
def test_sizes_of_gke_are_of_each_zone(place: dict[str, Any], zones: int) -> None:
    pool = made(POOL, **place, nodeConfig=T4, autoscaling={"minNodeCount": 0, "maxNodeCount": 2})
    assert judged("MLS-GPU-02", pool, max_accelerators=2 * 4 * zones) == {"": "pass"}
    assert judged("MLS-GPU-02", pool, max_accelerators=2 * 4 * zones - 1) == {"": "fail"}


def test_zones_come_from_the_cluster_which_lists_its_own_only_if_it_is_regional() -> None:
    def both(location: str) -> list[Resource]:
        pool = made(POOL, "p", cluster="gke", nodeConfig=T4, nodeCount=1)
        return [pool, made(GKE, "gke", location=location, nodeLocations=["us-central1-b", "us-central1-c"],
                           removeDefaultNodePool=True)]  # fmt: skip

    for location, zones in (("us-central1-a", 3), ("us-central1", 2)):
        assert judged("MLS-GPU-02", *both(location), max_accelerators=4 * zones) == {"": "pass"}
        assert judged("MLS-GPU-02", *both(location), max_accelerators=4 * zones - 1) == {"": "fail"}


def test_bounds_of_all_zones_together_are_not_multiplied() -> None:
    scaling = {"minNodeCount": 0, "maxNodeCount": 0, "totalMinNodeCount": 1, "totalMaxNodeCount": 2}
    pool = made(POOL, location="us-central1", nodeConfig=T4, autoscaling=scaling)
    assert judged("MLS-GPU-02", pool, max_accelerators=8) == {"": "pass"}
    assert judged("MLS-GPU-04", pool) == {"it": "fail autoscaling.totalMinNodeCount"}


def test_a_recorded_quota_counts_processors_of_its_market() -> None:
    assert judged("MLS-GPU-02", group(), quotas={"ec2_on_demand_p": 384.0}) == {"": "pass"}
    assert judged("MLS-GPU-02", group(), quotas={"ec2_on_demand_p": 383.0}) == {"": "fail"}
    assert judged("MLS-GPU-02", group(capacityType="SPOT"), quotas={"ec2_on_demand_p": 1.0}) == {"": "pass"}


def test_a_shared_file_system_keeps_checkpoints_too() -> None:
    spot = group(capacityType="SPOT")
    assert judged("MLS-GPU-03", spot) == {"it": "fail capacityType"}
    assert judged("MLS-GPU-03", spot, made("aws:efs/fileSystem:FileSystem", "efs")) == {"it": "pass"}
    tagged = made("aws:s3/bucketV2:BucketV2", "b", tags={"purpose": "Checkpoints"}, bucket="logs-1")
    assert judged("MLS-GPU-03", spot, tagged) == {"it": "pass"}


def test_services_need_a_pool_that_stays() -> None:
    spot = group("m6i.xlarge", capacityType="SPOT")
    stays = made(GROUP, "system", instanceTypes=["m6i.large"])
    assert judged("MLS-GPU-03", spot) == {"it": "fail capacityType"}
    assert judged("MLS-GPU-03", spot, stays) == {"it": "pass", "system": "pass"}
    named = group("m6i.xlarge", capacityType="SPOT", labels={"pool": "mlflow"})
    assert judged("MLS-GPU-03", named, stays) == {"it": "fail capacityType", "system": "pass"}


def test_what_serves_production_may_always_run_if_a_tag_says_so() -> None:
    def of(tags: dict[str, str]) -> Resource:
        return made(GROUP, tags=tags, instanceTypes=["g6.xlarge"], scalingConfig={"minSize": 1})

    assert judged("MLS-GPU-04", of({})) == {"it": "fail scalingConfig.minSize"}
    assert judged("MLS-GPU-04", of({"Environment": "Production"})) == {"it": "not-applicable"}
    assert judged("MLS-GPU-04", of({"environment": "dev"})) == {"it": "fail scalingConfig.minSize"}


def autoscaler(**arguments: Any) -> Resource:
    return made(RELEASE, "ca", chart="cluster-autoscaler", values={"extraArgs": arguments})


def alarm(**props: Any) -> Resource:
    reported = {"metricName": "DCGM_FI_DEV_GPU_UTIL", "alarmActions": ["arn:aws:sns:us-east-1:1:t"], **props}
    return made(ALARM, "alarm", **reported)


@pytest.mark.parametrize(
    ("others", "least", "said"),
    [
        ([], 0, "fail scalingConfig.minSize"),
        ([autoscaler()], 0, "pass"),
        ([autoscaler()], 1, "fail scalingConfig.minSize"),
        ([autoscaler(**{"scale-down-enabled": False})], 0, "fail scalingConfig.minSize"),
        ([made("kubernetes:apps/v1:Deployment", metadata={"name": "cluster-autoscaler"})], 0, "pass"),
        ([alarm()], 1, "pass"),
        ([alarm(alarmActions=[])], 1, "fail scalingConfig.minSize"),
        ([alarm(actionsEnabled=False)], 1, "fail scalingConfig.minSize"),
        ([alarm(metricName="CPUUtilization")], 1, "fail scalingConfig.minSize"),
        ([alarm(metricName=UnknownValue("metricName", "?"))], 1, "undetermined"),
        ([made("kubernetes:monitoring.coreos.com/v1:PrometheusRule", "r",
               spec={"groups": [{"rules": [{"expr": "avg(DCGM_FI_DEV_GPU_UTIL) < 5"}]}]})], 1, "pass"),
    ],
)  # fmt: skip
def test_idle_nodes_are_removed_or_raise_an_alarm(others: list[Resource], least: int, said: str) -> None:
    assert judged("MLS-GPU-05", group(least=least), *others) == {"it": said}


def test_a_preferred_taint_excludes_no_pod() -> None:
    def tainted(effect: str) -> Resource:
        return group(labels={"pool": "a"}, taints=[{"key": "k", "effect": effect}])

    assert judged("MLS-GPU-07", tainted("PREFER_NO_SCHEDULE")) == {"it": "fail taints"}
    assert judged("MLS-GPU-07", tainted("NO_EXECUTE")) == {"it": "pass"}
    assert judged("MLS-GPU-07", group(taints=[{"effect": "NO_SCHEDULE"}])) == {"it": "fail labels"}


def test_the_kubelet_can_taint_its_node_itself() -> None:
    data = base64.b64encode(b"flags: [--register-with-taints=nvidia.com/gpu=:NoSchedule]").decode()
    template = made(TEMPLATE, "lt", instanceType="p4d.24xlarge", userData=data)
    named = group(instanceTypes=[], launchTemplate={"name": "lt"}, labels={"pool": "a"})
    assert judged("MLS-GPU-07", template, named) == {"it": "pass"}


def test_gke_taints_accelerators_beside_a_pool_without() -> None:
    gpus = made(POOL, "gpus", nodeConfig=T4)
    assert judged("MLS-GPU-07", gpus) == {"gpus": "fail nodeConfig.taints"}
    assert judged("MLS-GPU-07", gpus, made(POOL, "cpus")) == {"gpus": "pass", "cpus": "not-applicable"}


def test_pools_of_another_cluster_do_not_make_gke_taint_these() -> None:
    clusters = [made(GKE, name, name=name, removeDefaultNodePool=True) for name in ("a", "b")]
    gpus, cpus = made(POOL, "gpus", nodeConfig=T4, cluster="a"), made(POOL, "cpus", cluster="b")
    assert judged("MLS-GPU-07", *clusters, gpus, cpus)["gpus"] == "fail nodeConfig.taints"
    beside = made(POOL, "cpus", cluster="a")
    assert judged("MLS-GPU-07", *clusters, gpus, beside)["gpus"] == "pass"
    eks = group("m7i.large")
    assert judged("MLS-GPU-07", clusters[0], gpus, eks)["gpus"] == "fail nodeConfig.taints"


def test_a_pool_is_no_resource_of_its_own_because_one_of_another_cluster_has_its_name() -> None:
    written = made(GKE, "a", name="a", nodePools=[{"name": "gpus", "nodeConfig": T4}])
    clusters = [written, made(GKE, "b", name="b", removeDefaultNodePool=True)]
    other = made(POOL, "other", name="gpus", cluster="b")
    assert judged("MLS-GPU-07", *clusters, other)["a"] == "fail nodePools[0].nodeConfig.taints"
    read = made(POOL, "read", name="gpus", cluster="a", nodeConfig=T4)
    assert judged("MLS-GPU-07", *clusters, read)["a"] == "not-applicable"


@pytest.mark.parametrize(
    ("machine", "image", "said"),
    [
        ("p4d.24xlarge", "BOTTLEROCKET_x86_64_NVIDIA_FIPS", "pass"),
        ("p4d.24xlarge", "AL2_x86_64_GPU", "pass"),
        ("p4d.24xlarge", "AL2023_x86_64_NEURON", "fail amiType"),
        ("trn1.32xlarge", "AL2023_x86_64_NEURON", "pass"),
        ("p4d.24xlarge", "CUSTOM", "not-applicable"),
    ],
)
def test_the_image_has_the_driver_of_the_machine(machine: str, image: str, said: str) -> None:
    assert judged("MLS-GPU-08", group(machine, amiType=image)) == {"it": said}


def test_something_else_can_install_the_driver_on_gke() -> None:
    off = {"gpuDriverInstallationConfig": {"gpuDriverVersion": "INSTALLATION_DISABLED"}}
    gpus = {"type": "nvidia-l4", "count": 1, **off}
    pool = made(POOL, nodeConfig={"machineType": "g2-standard-12", "guestAccelerators": [gpus]})
    path = "nodeConfig.guestAccelerators[0].gpuDriverInstallationConfig.gpuDriverVersion"
    assert judged("MLS-GPU-08", pool) == {"it": f"fail {path}"}
    operator = made(RELEASE, "op", chart="gpu-operator")
    assert judged("MLS-GPU-08", pool, operator) == {"it": "pass"}


@pytest.mark.parametrize(
    ("machines", "said"),
    [
        (["g5.12xlarge", "g5.24xlarge"], "pass"),
        (["p4d.24xlarge", "p4de.24xlarge"], "fail instanceTypes[1]"),
        (["p5.48xlarge", "p5en.48xlarge"], "fail instanceTypes[1]"),
        (["g6.xlarge", "m6i.xlarge"], "fail instanceTypes[1]"),
        (["m6i.xlarge", "m5.xlarge"], "not-applicable"),
        (["trn1.32xlarge", "p4d.24xlarge"], "undetermined"),
    ],
)
def test_shapes_that_differ(machines: list[str], said: str) -> None:
    assert judged("MLS-GPU-09", group(instanceTypes=machines)) == {"it": said}


SUBNET = "aws:ec2/subnet:Subnet"
SUBNETS = [made(SUBNET, name, availabilityZone=f"us-east-1{name[0]}") for name in ("a", "a2", "b")]


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        (group(subnetIds=["a", "b"]), "fail subnetIds"),
        (group("m7i.large", amiType="AL2023_x86_64_NVIDIA", subnetIds=["a", "b"]), "fail subnetIds"),
        (group(subnetIds=["a", "a2"]), "pass"),
        (group(subnetIds=["a", "b"], most=1), "pass"),
        (group("m7i.large", subnetIds=["a", "b"]), "not-applicable"),
        (group(subnetIds=["a", "elsewhere"]), "undetermined"),
        (group(subnetIds=UnknownValue("subnetIds", "known after the deployment")), "undetermined"),
    ],
)
def test_accelerators_are_not_balanced_over_zones(pool: Resource, expected: str) -> None:
    assert judged("MLS-GPU-12", pool, *SUBNETS)["it"] == expected
