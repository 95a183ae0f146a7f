from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components.gcp.pools.installers import GcpFabricInstallers, InstalledArgs, daemons
from infra.launchers.gcp import gke
from policies.evaluate import evaluate
from policies.resource import Resource
from policies.rules import CATALOG
from policies.stack import Stack
from tests.components.graph import deploy_graph

Body = dict[str, Any]


def one(fabric: str) -> InstalledArgs:
    return {"fabric": fabric, "pools": [f"pool-{fabric}"]}


ALL = [one("tcpx"), one("tcpxo"), one("rdma")]


def pod(body: Body) -> Body:
    spec: Body = body["spec"]["template"]["spec"]
    return spec


def containers(body: Body) -> list[Body]:
    return [*pod(body).get("initContainers", []), *pod(body)["containers"]]


def by_name() -> dict[str, Body]:
    return {body["metadata"]["name"]: body for body in daemons(ALL)}


def test_each_fabric_is_installed_on_its_own_pools_alone() -> None:
    for name, pools in {
        "nccl-tcpx": ["pool-tcpx"],
        "nccl-tcpxo": ["pool-tcpxo"],
        "nccl-gib": ["pool-rdma"],
        "device-injector": ["pool-tcpx", "pool-tcpxo"],
    }.items():
        terms = pod(by_name()[name])["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]["nodeSelectorTerms"]
        assert terms == [
            {"matchExpressions": [{"key": "trainstack.dev/pool", "operator": "In", "values": pools}]}
        ]


def test_rdma_alone_needs_no_device_injector() -> None:
    assert [body["metadata"]["name"] for body in daemons([one("rdma")])] == ["nccl-gib"]
    assert daemons([]) == []


def test_only_the_set_up_of_tcpxo_s_devices_enters_the_node() -> None:
    privileged = [
        (name, container["name"])
        for name, body in by_name().items()
        for container in containers(body)
        if (container.get("securityContext") or {}).get("privileged")
    ]
    assert privileged == [("nccl-tcpxo", "devices")]
    assert [name for name, body in by_name().items() if pod(body).get("hostPID")] == ["nccl-tcpxo"]
    assert not any(pod(body).get("hostNetwork") for body in by_name().values())


def test_everything_else_may_only_copy_files() -> None:
    for body in by_name().values():
        assert pod(body)["automountServiceAccountToken"] is False
        for container in containers(body):
            context = container["securityContext"]
            if not context.get("privileged"):
                assert context["allowPrivilegeEscalation"] is False
                assert context["capabilities"]["drop"] == ["ALL"]


def test_plugin_and_daemon_are_a_pair_and_no_image_floats() -> None:
    images = {container["image"] for body in by_name().values() for container in containers(body)}
    assert {gke.TCPX_PLUGIN, gke.TCPXO_PLUGIN, gke.GIB_PLUGIN} < images
    for image in images:
        assert "@sha256:" in image or image.rpartition(":")[2].startswith("v")
    # By its release notes, the newest stored: 2026-06-22 (TCPX); R580 (TCPXO).
    assert gke.TCPX_DAEMON.endswith(":v2.0.15") and gke.TCPX_PLUGIN.endswith(":v3.1.12")
    assert gke.TCPXO_DAEMON.endswith(":v1.0.22") and gke.TCPXO_PLUGIN.endswith(":v1.0.16")


def test_gib_lies_where_every_container_with_gpus_sees_it_and_where_google_mounts_it() -> None:
    (copy,) = pod(by_name()["nccl-gib"])["initContainers"]
    assert pod(by_name()["nccl-gib"])["volumes"] == [
        {"name": "driver", "hostPath": {"path": "/home/kubernetes/bin/nvidia", "type": "Directory"}},
        {"name": "gib", "hostPath": {"path": "/home/kubernetes/bin/gib", "type": "DirectoryOrCreate"}},
    ]
    assert {mount["name"] for mount in copy["volumeMounts"]} == {"driver", "gib"}
    assert "/usr/local/nvidia/gib" in copy["command"][-1]
    assert gke.gib()["profile"].startswith("/usr/local/nvidia/gib/")


def judged(rule: str) -> list[str]:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        made = GcpFabricInstallers("dev-fabric", {"fabrics": ALL})
        return {"installed": made.installed}

    graph = deploy_graph(program)
    assert len(graph.outputs["installed"]) == 4
    kind = "kubernetes:apps/v1:DaemonSet"
    resources = [
        Resource(kind=kind, urn=name, name=name, props=dict(props))
        for name, props in graph.all("DaemonSet").items()
    ]
    rules = [CATALOG.rules[rule]]
    return [str(found) for found in evaluate(Stack(resources), rules) if found.result != "pass"]


@pytest.mark.parametrize("rule", ["MLS-K8S-01", "MLS-K8S-02"])
def test_the_policies_know_them_as_agents_of_their_node(rule: str) -> None:
    assert judged(rule) == []
