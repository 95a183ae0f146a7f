"""A small GKE program with the real engine, and errors of the emulated Google Cloud."""

import json
import re
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pulumi_kubernetes as k8s
import pytest
from pulumi import automation

from rehearsal.client import Rehearsal
from tests.rehearsal.runs.updates import changes, refused

Select = Callable[[Callable[[], None]], automation.Stack]


def kubeconfig(name: str, endpoint: str, authority: str) -> str:
    user = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "gke-gcloud-auth-plugin"}
    }
    cluster = {"server": f"https://{endpoint}", "certificate-authority-data": authority}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": user}],
        }
    )


def lanes(count: int) -> Any:
    """One network and subnetwork per NIC of the GPUs."""
    found: list[Any] = []
    for index in range(count):
        space = gcp.compute.Network(f"gpu-{index}", auto_create_subnetworks=False, mtu=8244)
        lane = gcp.compute.Subnetwork(f"gpu-{index}", network=space.id, ip_cidr_range=f"192.168.{index}.0/24")
        found.append({"network": space.name, "subnetwork": lane.name})
    return found


def program(gpu_networks: int = 8, **cluster_options: Any) -> None:
    network = gcp.compute.Network("net", auto_create_subnetworks=False, mtu=8244)
    subnetwork = gcp.compute.Subnetwork(
        "nodes",
        network=network.id,
        ip_cidr_range="10.0.0.0/20",
        secondary_ip_ranges=[{"range_name": "pods", "ip_cidr_range": "10.64.0.0/14"}],
    )
    account = gcp.serviceaccount.Account("nodes", account_id="gke-nodes")
    gcp.projects.IAMMember("logs", project="research", role="roles/logging.logWriter", member=account.member)
    cluster = gcp.container.Cluster(
        "gke",
        location="us-central1",
        network=network.name,
        subnetwork=subnetwork.name,
        remove_default_node_pool=True,
        initial_node_count=1,
        deletion_protection=False,
        enable_multi_networking=True,
        datapath_provider="ADVANCED_DATAPATH",
        workload_identity_config={"workload_pool": "research.svc.id.goog"},
        ip_allocation_policy={"cluster_secondary_range_name": "pods"},
        **cluster_options,
    )
    pool = gcp.container.NodePool(
        "gpus",
        cluster=cluster.name,
        location="us-central1",
        node_locations=["us-central1-a"],
        node_count=1,
        node_config={
            "machine_type": "a3-megagpu-8g",
            "service_account": account.email,
            "guest_accelerators": [{"type": "nvidia-h100-mega-80gb", "count": 8}],
        },
        network_config={"additional_node_network_configs": lanes(gpu_networks)},
    )
    config = pulumi.Output.all(
        cluster.name, cluster.endpoint, cluster.master_auth.cluster_ca_certificate
    ).apply(lambda given: kubeconfig(*given))
    provider = k8s.Provider("k8s", kubeconfig=config)
    team = k8s.core.v1.Namespace("team", opts=pulumi.ResourceOptions(provider=provider, depends_on=[pool]))
    gcp.serviceaccount.IAMMember(
        "identity",
        service_account_id=account.name,
        role="roles/iam.workloadIdentityUser",
        member=cluster.project.apply(lambda name: f"serviceAccount:{name}.svc.id.goog[team/train]"),
    )
    pulumi.export("link", cluster.self_link)
    pulumi.export("groups", pool.instance_group_urls)
    pulumi.export("namespace", team.metadata.name)
    pulumi.export("zones", gcp.compute.get_zones_output(region="us-central1").names)
    pulumi.export("project", gcp.organizations.get_project().number)


def select(stack: Select, body: Callable[[], None]) -> automation.Stack:
    stack_ = stack(body)
    stack_.set_config("gcp:project", automation.ConfigValue("research"))
    stack_.set_config("gcp:region", automation.ConfigValue("us-central1"))
    return stack_


def test_a_gke_program_goes_up_stays_the_same_and_leaves_nothing(rehearsal: Rehearsal, stack: Select) -> None:
    stack_ = select(stack, program)
    result = stack_.up()
    assert set(changes(result)) == {"create"}
    outputs = {name: output.value for name, output in result.outputs.items()}
    assert re.fullmatch(
        r"https://container.googleapis.com/v1/projects/research/locations/us-central1/clusters/gke-[0-9a-f]{7}",
        outputs["link"],
    )
    assert [group for group in outputs["groups"] if "/zones/us-central1-a/instanceGroups/gke-gke-" in group]
    assert outputs["namespace"].startswith("team-")
    assert outputs["zones"] == [f"us-central1-{letter}" for letter in "abcf"]
    assert len(outputs["project"]) == 12
    again = changes(stack_.up())
    assert set(again) == {"same"}
    assert set(changes(stack_.destroy())) == {"delete"}
    assert rehearsal.status()["resources"] == {"aws": 0, "gcp": 0, "kubernetes": 0}


def test_deleting_a_network_that_is_used_is_refused(rehearsal: Rehearsal, stack: Select) -> None:
    link = "projects/research/global/networks/net"

    def both() -> None:
        network = gcp.compute.Network("net", name="net", auto_create_subnetworks=False)
        after = pulumi.ResourceOptions(depends_on=[network])
        gcp.compute.Subnetwork("sub", name="sub", network=link, ip_cidr_range="10.0.0.0/20", opts=after)

    def without_network() -> None:
        gcp.compute.Subnetwork("sub", name="sub", network=link, ip_cidr_range="10.0.0.0/20")

    select(stack, both).up()
    said = refused(select(stack, without_network))
    assert f"resourceInUseByAnotherResource: The network resource '{link}' is already being used by" in said
    assert rehearsal.status()["resources"]["gcp"] == 2
    select(stack, both).up()  # the engine knows the order again
    assert set(changes(select(stack, both).destroy())) == {"delete"}


def test_a_protected_cluster_is_not_destroyed(rehearsal: Rehearsal, stack: Select) -> None:
    def protected() -> None:
        gcp.container.Cluster("gke", location="us-central1-a", initial_node_count=1)

    stack_ = select(stack, protected)
    stack_.up()
    with pytest.raises(automation.CommandError, match="deletion_protection is set to true"):
        stack_.destroy()
    assert rehearsal.status()["resources"]["gcp"] == 6  # with the firewall rules that GKE made


def test_an_unknown_function_names_the_file_to_extend(stack: Select) -> None:
    said = refused(select(stack, lambda: pulumi.export("x", gcp.compute.get_snapshot(name="x").id)))
    assert "getSnapshot" in said and "rehearsal/gcp/functions.py" in said


def test_a_missing_project_is_reported(stack: Select) -> None:
    said = refused(stack(lambda: pulumi.export("x", gcp.compute.Network("net").id)))
    assert "project: required field is not set" in said
