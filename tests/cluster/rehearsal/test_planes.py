"""Real control planes of several clusters in one rehearsal home, and their ends."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.aws.cloud import EmulatedAws
from rehearsal.core.model import RefusalError
from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from rehearsal.realcluster.cloud import RealKubernetesCloud
from rehearsal.realcluster.made_clusters import MadeClusters
from rehearsal.realcluster.real_provider import FOLDER, admin_kubeconfig
from tests.rehearsal.aws.harness import EKS_TRUST
from tests.rehearsal.driver import CACHE, Driver

pytestmark = pytest.mark.more
NAMESPACE = "core/v1:Namespace"
REGIONS = ("us-east-1", "us-west-2")


class Home:
    """An account with a cluster of one name in each of two regions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._schemas = [Schemas(name, CACHE) for name in ("aws", "kubernetes")]
        self.state = State(folder / "state.sqlite", daemon=True)
        self.cloud = RealKubernetesCloud(self.state, self._schemas[1], folder)
        account = MadeClusters(EmulatedAws(self.state, self._schemas[0], folder), self.state, folder)
        self.aws = Driver("aws", self.state, account, {"region": REGIONS[0]})

    def cluster(self, region: str) -> Driver:
        """A new cluster; returns a driver of its objects."""
        vpc = self.aws.create("ec2/vpc:Vpc", f"vpc-{region}", cidrBlock="10.0.0.0/16", region=region)["id"]
        subnets = [
            self.aws.create(
                "ec2/subnet:Subnet", f"subnet-{region}{zone}", vpcId=vpc, region=region,
                cidrBlock=f"10.0.{index}.0/24", availabilityZone=f"{region}{zone}",
            )["id"]
            for index, zone in enumerate("ab")
        ]  # fmt: skip
        role = self.aws.create("iam/role:Role", f"role-{region}", assumeRolePolicy=EKS_TRUST)
        made = self.aws.create(
            "eks/cluster:Cluster", f"cluster-{region}", name="dev", region=region, roleArn=role["arn"],
            vpcConfig={"subnetIds": subnets},
        )  # fmt: skip
        return self.objects(made["endpoint"])

    def objects(self, endpoint: str) -> Driver:
        """A driver of the objects of a cluster."""
        kubeconfig = json.dumps({"clusters": [{"name": "dev", "cluster": {"server": endpoint}}]})
        return Driver("kubernetes", self.state, self.cloud, {"kubeconfig": kubeconfig})

    def stop(self) -> None:
        """End every process, as the end of the daemon does."""
        self.cloud.stop()
        for one in self._schemas:
            one.close()
        self.state.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.stop()


def _names(home: Home, one: Driver) -> set[str]:
    """The namespaces of a cluster, by its API server."""
    apis = [plane.api() for plane in home.cloud.planes.all()]
    (api,) = (found for found in apis if found.access.server in str(one.config["kubeconfig"]))
    return {body["metadata"]["name"] for body in api.list("v1", "Namespace")}


def test_each_cluster_has_objects_of_its_own_until_its_end(home: Home) -> None:
    east, west = map(home.cluster, REGIONS)
    for one, name in ((east, "of-east"), (west, "of-west")):
        one.create(NAMESPACE, name, metadata={"name": name})
    assert "of-east" in _names(home, east) and "of-west" not in _names(home, east)
    assert "of-west" in _names(home, west)
    logins = {admin_kubeconfig(home.folder, str(one.config["kubeconfig"])) for one in (east, west)}
    assert len(logins) == 2 and all(path.exists() for path in logins)
    east.delete("of-east")
    home.aws.delete(f"cluster-{REGIONS[0]}")
    with pytest.raises(RefusalError, match="ClusterUnreachable"):
        east.create(NAMESPACE, "late", metadata={"name": "late"})
    assert "of-west" in _names(home, west)
    assert [one.name for one in (home.folder / FOLDER).iterdir() if one.is_dir()] == [
        f"dev.{REGIONS[1]}.123456789012"
    ]
    # A new daemon starts those that are left, with their objects.
    home.cloud.stop()
    home.cloud.restore()
    assert "of-west" in _names(home, west)
    west.delete("of-west")
    home.aws.delete(f"cluster-{REGIONS[1]}")
    assert home.cloud.live_workloads() == []
