"""Resources that services make by themselves block deletions of a program."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from rehearsal.kubernetes.cloud import KubernetesCloud
from tests.rehearsal.aws import harness
from tests.rehearsal.aws.rules.world import trust
from tests.rehearsal.driver import CACHE, Driver, refused

SERVICE = "core/v1:Service"


class Clouds:
    """An EKS cluster in a VPC with two subnets, and a provider inside it."""

    def __init__(self, folder: Path) -> None:
        self.state = State(folder / "state.sqlite")
        self.schemas = [Schemas(package, CACHE) for package in ("aws", "kubernetes")]
        self.aws = harness.Driver(folder, self.schemas[0], self.state)
        self.vpc, self.subnets = self.aws.network()
        role = self.aws.create("iam/role:Role", "role", assumeRolePolicy=trust("eks.amazonaws.com"))
        made = self.aws.create(
            "eks/cluster:Cluster",
            "cluster",
            name="dev",
            roleArn=role["arn"],
            vpcConfig={"subnetIds": self.subnets},
            accessConfig={"authenticationMode": "API"},
        )
        config = json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": made["endpoint"]}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "users": [{"name": "u", "user": {}}],
        })  # fmt: skip
        self.inside = KubernetesCloud(self.state, self.schemas[1], folder / "home")
        self.kubernetes = Driver("kubernetes", self.state, self.inside, {"kubeconfig": config})

    def balancer(self, type: str = "LoadBalancer") -> dict[str, Any]:
        return {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"type": type, "selector": {"app": "web"}, "ports": [{"port": 80}]},
        }

    def close(self) -> None:
        self.inside.stop()
        for schemas in self.schemas:
            schemas.close()
        self.state.close()


@pytest.fixture
def clouds(tmp_path: Path) -> Iterator[Clouds]:
    clouds = Clouds(tmp_path)
    yield clouds
    clouds.close()


def test_the_nodes_of_a_group_hold_subnets_and_groups_of_their_template(clouds: Clouds) -> None:
    aws = clouds.aws
    group = aws.create("ec2/securityGroup:SecurityGroup", "group", vpcId=clouds.vpc, name="nodes")["id"]
    other = aws.create("ec2/securityGroup:SecurityGroup", "other", vpcId=clouds.vpc, name="other")["id"]
    template = aws.create(
        "ec2/launchTemplate:LaunchTemplate", "lt", name="template", vpcSecurityGroupIds=[group]
    )
    role = aws.create("iam/role:Role", "nodes", assumeRolePolicy=trust("ec2.amazonaws.com"))["arn"]
    wanted: dict[str, Any] = {
        "clusterName": "dev",
        "nodeGroupName": "pool",
        "nodeRoleArn": role,
        "subnetIds": clouds.subnets,
        "instanceTypes": ["g6.2xlarge"],
        "scalingConfig": {"minSize": 0, "maxSize": 1, "desiredSize": 0},
        "launchTemplate": {"id": template["id"], "version": "1"},
    }
    aws.create("eks/nodeGroup:NodeGroup", "pool", **wanted)
    refused(r"DependencyViolation.*network interface of the nodes of pool", aws.delete, "group")
    aws.update("lt", name="template", vpcSecurityGroupIds=[other])
    aws.update("pool", **{**wanted, "launchTemplate": {"id": template["id"], "version": "2"}})
    aws.delete("group")
    refused("DependencyViolation", aws.delete, "other")
    aws.delete("pool")
    aws.delete("lt")
    aws.delete("other")


def test_a_load_balancer_is_deleted_with_its_service(clouds: Clouds) -> None:
    before = clouds.state.count("aws")
    clouds.kubernetes.create(SERVICE, "web", **clouds.balancer())
    assert clouds.state.count("aws") == before + 2
    clouds.kubernetes.update("web", **clouds.balancer("ClusterIP"))
    assert clouds.state.count("aws") == before
    clouds.kubernetes.update("web", **clouds.balancer())
    assert clouds.state.count("aws") == before + 2
    clouds.kubernetes.delete("web")
    assert clouds.state.count("aws") == before


def test_a_load_balancer_outlives_its_cluster_and_holds_the_network(clouds: Clouds) -> None:
    clouds.kubernetes.create(SERVICE, "web", **clouds.balancer())
    clouds.aws.delete("cluster")
    refused(r"DependencyViolation.*load balancer of Service default/web", clouds.aws.delete, "subnet-a")


def test_a_claim_stays_while_pods_use_it_and_a_volume_while_it_is_claimed(clouds: Clouds) -> None:
    kubernetes = clouds.kubernetes
    size = {"accessModes": ["ReadWriteMany"]}
    disk = {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1"}
    volume = {**size, "capacity": {"storage": "1Gi"}, "csi": disk}
    kubernetes.create("core/v1:PersistentVolume", "pv", metadata={"name": "pv"}, spec=volume)
    claim = {
        **size,
        "resources": {"requests": {"storage": "1Gi"}},
        "volumeName": "pv",
        "storageClassName": "",
    }
    kubernetes.create("core/v1:PersistentVolumeClaim", "pvc", metadata={"name": "pvc"}, spec=claim)
    pod = {
        "containers": [{"name": "c", "image": "other"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "pvc"}}],
    }
    template = {"metadata": {"labels": {"app": "a"}}, "spec": pod}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template, "replicas": 0}
    kubernetes.create("apps/v1:Deployment", "user", metadata={"name": "user"}, spec=spec)
    refused("pvc-protection stays while Deployment default/user", kubernetes.delete, "pvc")
    refused("pv-protection stays while PersistentVolumeClaim default/pvc", kubernetes.delete, "pv")
    for name in ("user", "pvc", "pv"):
        kubernetes.delete(name)
