"""A cluster of Cluster Director: controller, login node, nodesets and partitions."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp
from pulumi_gcp import hypercomputecluster as director_api

from components.base import Component, Options
from components.gcp.network.firewall import logins_in
from components.gcp.network.subnetwork import let_in
from infra.catalog.gcp.director import director, reservation_name

HOME: Final = "/home"
FAST: Final = "/lustre"
_NETWORK, _HOMES, _FAST = "network", "homes", "lustre"
_USER: Final = """#!/bin/bash
id trainstack > /dev/null 2>&1 ||
  useradd --system --uid 61000 --home-dir /home/trainstack --no-create-home trainstack
"""
"""Startup script of every node: the user of validations, with the same number everywhere."""
_Storage = director_api.ClusterStorageResourceConfigArgsDict


class NodesetArgs(TypedDict):
    """Machines of a nodeset, and of the partition of the same name."""

    name: str
    """Name of nodeset and partition."""
    machine: str
    """Machine type."""
    purchase: Literal["on_demand", "spot", "reserved", "block", "flex_start"]
    """Way to buy the machines."""
    reservation: NotRequired[str]
    """`projects/<project>/reservations/<name>`."""
    min_nodes: int
    """Nodes that always run."""
    max_nodes: int
    """Maximum number of nodes."""
    disk_gib: int
    """Boot disk in GiB."""
    disk_type: str
    """Type of the boot disk, such as `pd-balanced`."""


class GcpSlurmClusterArgs(TypedDict):
    """Place, network, machines and file systems of a cluster."""

    project: str
    """Id of the project."""
    region: str
    """Region of the cluster."""
    zone: str
    """The one zone of all its machines."""
    cluster_id: str
    """Id of the cluster: at most ten lower-case letters and digits. A change replaces it."""
    network_id: pulumi.Input[str]
    """`projects/<project>/global/networks/<name>`."""
    subnetwork_id: pulumi.Input[str]
    """`projects/<project>/regions/<region>/subnetworks/<name>`."""
    node_cidr: str
    """Range of the subnetwork, whose addresses may reach each other."""
    login_machine: str
    """Machine type of the login node."""
    login_disk_gib: int
    """Boot disk of the login node in GiB."""
    nodesets: Sequence[NodesetArgs]
    """Nodesets, each with a partition of its name."""
    default_partition: str
    """Partition of jobs that name none."""
    check: str
    """Script that fails on a node with broken GPUs, before and after each job."""
    homes: NotRequired[pulumi.Input[str]]
    """`projects/<project>/locations/<location>/instances/<name>` of Filestore, mounted at /home."""
    lustre: NotRequired[pulumi.Input[str]]
    """`projects/<project>/locations/<zone>/instances/<name>` of Managed Lustre, mounted at /lustre."""
    labels: Mapping[str, str]
    """Labels of the cluster's machines: those of the provider reach the cluster alone."""
    login_labels: Mapping[str, str]
    """Further labels of the login node."""


class GcpSlurmCluster(Component):
    """A managed controller with accounting. No machine has a public address: login is by IAP and OS Login.

    Machines run as an account that the service chooses (its documentation grants roles to the Compute Engine
    default service account): the resource names none, and this component grants it nothing. The project must
    not give that account the role Editor, which every member of the system could then use.

    A new cluster enforces no limits of accounts (see the catalog). *Untested in a real project.*
    """

    cluster_name: pulumi.Output[str]
    """`projects/<project>/locations/<region>/clusters/<id>`."""
    login_node: pulumi.Output[str]
    """`projects/<project>/zones/<zone>/instances/<name>` of the login node."""

    def __init__(self, name: str, args: GcpSlurmClusterArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        rules = [
            let_in(
                self,
                f"{name}-in-nodes",
                network=args["network_id"],
                source=args["node_cidr"],
                description="Nodes of Slurm to each other, and to the controller",
            ),
            logins_in(self, name, network=args["network_id"]),
        ]
        cluster = gcp.hypercomputecluster.Cluster(
            name,
            cluster_id=args["cluster_id"],
            location=args["region"],
            project=args["project"],
            network_resources=[
                {
                    "id": _NETWORK,
                    "config": {
                        "existing_network": {
                            "network": args["network_id"],
                            "subnetwork": args["subnetwork_id"],
                        }
                    },
                }
            ],
            storage_resources=[{"id": key, "config": config} for key, _, config in _storage(args)],
            compute_resources=[
                {"id": one["name"], "config": _instances(one, args["zone"])} for one in args["nodesets"]
            ],
            orchestrator={"slurm": _slurm(args)},
            opts=self.child(pulumi.ResourceOptions(depends_on=rules)),
        )
        self.cluster_name = cluster.name
        self.login_node = cluster.orchestrator.apply(_first_login)
        self.register_declared()


def _slurm(args: GcpSlurmClusterArgs) -> director_api.ClusterOrchestratorSlurmArgsDict:
    """The settings of Slurm."""
    mounts: list[director_api.ClusterOrchestratorSlurmNodeSetStorageConfigArgsDict] = [
        {"id": key, "local_mount": path} for key, path, _ in _storage(args)
    ]
    return {
        "login_nodes": {
            "count": "1",
            "zone": args["zone"],
            "machine_type": args["login_machine"],
            "boot_disk": _disk(args, "pd-balanced", args["login_disk_gib"]),
            "enable_os_login": True,
            "enable_public_ips": False,
            "labels": {**args["labels"], **args["login_labels"]},
            "startup_script": _USER,
            "storage_configs": mounts,
        },
        "node_sets": [
            {
                "id": one["name"],
                "compute_id": one["name"],
                "static_node_count": str(one["min_nodes"]),
                "max_dynamic_node_count": str(one["max_nodes"] - one["min_nodes"]),
                "compute_instance": {
                    "boot_disk": _disk(args, one["disk_type"], one["disk_gib"]),
                    "labels": args["labels"],
                    "startup_script": _USER,
                },
                "storage_configs": mounts,
            }
            for one in args["nodesets"]
        ],
        "partitions": [{"id": one["name"], "node_set_ids": [one["name"]]} for one in args["nodesets"]],
        # Required if and only if there is more than one partition.
        "default_partition": args["default_partition"] if len(args["nodesets"]) > 1 else None,
        "prolog_bash_scripts": [args["check"]],
        "epilog_bash_scripts": [args["check"]],
    }


def _first_login(found: Any) -> str:
    instances = found.slurm.login_nodes.instances or ()
    return str(instances[0].instance) if instances else ""


def _storage(args: GcpSlurmClusterArgs) -> list[tuple[str, str, _Storage]]:
    """Id, folder and configuration of each file system."""
    found: list[tuple[str, str, _Storage]] = []
    if "homes" in args:
        found.append((_HOMES, HOME, {"existing_filestore": {"filestore": args["homes"]}}))
    if "lustre" in args:
        found.append((_FAST, FAST, {"existing_lustre": {"lustre": args["lustre"]}}))
    return found


def _instances(one: NodesetArgs, zone: str) -> director_api.ClusterComputeResourceConfigArgsDict:
    machine = one["machine"]
    match one["purchase"]:
        case "on_demand":
            return {"new_on_demand_instances": {"machine_type": machine, "zone": zone}}
        case "spot":
            return {"new_spot_instances": {"machine_type": machine, "zone": zone}}
        case "flex_start":
            longest = f"{director.limits['flex_start_s']}s"
            return {
                "new_flex_start_instances": {"machine_type": machine, "zone": zone, "max_duration": longest}
            }
        case "reserved" | "block":
            return {"new_reserved_instances": {"reservation": reservation_name(one["reservation"], zone)}}


def _disk(
    args: GcpSlurmClusterArgs, kind: str, gib: int
) -> director_api.ClusterOrchestratorSlurmLoginNodesBootDiskArgsDict:
    path = f"projects/{args['project']}/zones/{args['zone']}/diskTypes/{kind}"
    return {"type": path, "size_gb": str(gib)}
