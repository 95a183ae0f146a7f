"""A Slurm system in an EKS cluster: its objects, what is secret, and the policies."""

import functools
from typing import Any

import pytest
import yaml

from components.kubernetes.slurm.objects import sssd_conf
from infra import stackspec
from infra.slurm import slinky
from rehearsal.controlplane.binaries import files_of, kept
from tests.components.graph import Graph
from tests.stacks.composition import judged
from tests.stacks.composition.composed import deployed

STACK = "large-slinky-aws"
KINDS = ("Accounting", "Controller", "LoginSet", "NodeSet", "RestApi")


@functools.cache
def graph() -> Graph:
    return deployed(stackspec.load_file(STACK).spec)


def specs(kind: str) -> dict[str, Any]:
    return {one["metadata"]["name"]: one["spec"] for one in graph().all(kind).values()}


# Nodes of the operator always run, without an alarm; slurmd makes cgroups in a privileged container.
KNOWN = {"MLS-COST-03", "MLS-GPU-04", "MLS-GPU-05", "MLS-K8S-03"}


def test_only_the_violations_that_the_documentation_names_are_left() -> None:
    outcomes = judged.verdicts(judged.resources(graph(), "us-east-1"), STACK)
    assert judged.reported(outcomes, "undetermined") == []
    assert {line.split()[0] for line in judged.reported(outcomes, "fail")} == KNOWN


def test_every_pool_is_a_node_set_on_its_own_nodes() -> None:
    found = specs("NodeSet")
    assert {name: spec["replicas"] for name, spec in found.items()} == {"p4d": 4, "l4": 2}
    p4d = found["p4d"]
    assert p4d["template"]["spec"]["nodeSelector"] == {"trainstack.dev/pool": "p4d"}
    limits = p4d["slurmd"]["resources"]["limits"]
    assert (limits["nvidia.com/gpu"], limits["vpc.amazonaws.com/efa"]) == ("8", "4")
    assert "Gres=gpu:a100:8" in p4d["extraConf"].split()
    assert p4d["partition"]["enabled"]


def test_nothing_of_kueue_and_no_autoscaler_owns_the_nodes() -> None:
    releases = {one["name"] for one in graph().all("Release").values()}
    assert {"slurm-operator", "slurm-operator-crds"} <= releases
    assert not releases & {"kueue", "cluster-autoscaler"}
    groups = graph().all("NodeGroup")
    sizes = {name: one["scalingConfig"]["minSize"] for name, one in groups.items() if "system" not in name}
    assert sum(sizes.values()) == 6


def test_system_nodes_are_in_the_zone_of_the_disks_of_their_pods() -> None:
    (system,) = (one for name, one in graph().all("NodeGroup").items() if "system" in name)
    (subnet,) = system["subnetIds"]
    zones = {f"{name}-id": one["availabilityZone"] for name, one in graph().all("Subnet").items()}
    assert zones[subnet] == stackspec.load_file(STACK).spec.layout.zones[0]
    assert system["scalingConfig"]["minSize"] == 2


def test_the_login_pod_is_private_and_takes_keys_alone() -> None:
    login = specs("LoginSet")["login"]
    assert login["service"]["spec"]["type"] == "ClusterIP"
    assert {"PermitRootLogin no", "PasswordAuthentication no"} <= set(login["extraSshdConfig"].splitlines())


def test_the_keys_of_members_are_those_of_their_directory() -> None:
    sshd = specs("LoginSet")["login"]["extraSshdConfig"].splitlines()
    assert "AuthorizedKeysCommand /usr/bin/sss_ssh_authorizedkeys" in sshd
    assert any(line.startswith("AuthorizedKeysCommandUser ") for line in sshd)
    lines = sssd_conf({"uri": "ldaps://ldap.example.com", "base": "dc=example"}).splitlines()
    (services,) = (line.partition("=")[2] for line in lines if line.startswith("services"))
    assert {one.strip() for one in services.split(",")} == {"nss", "pam", "ssh"}


def test_members_may_forward_a_port_and_run_nothing_in_pods() -> None:
    role = graph().find("Role", "slurm-member-role")
    rights = {resource: one["verbs"] for one in role["rules"] for resource in one["resources"]}
    assert rights == {"services": ["get"], "pods": ["get", "list"], "pods/portforward": ["create"]}


def test_the_webhook_that_every_pod_needs_survives_the_loss_of_a_node() -> None:
    release = graph().find("Release", "operator-operator")
    webhook = release["values"]["webhook"]
    assert webhook["replicas"] == 2
    assert webhook["pdb"] == {"enabled": True, "minAvailable": 1}
    (apart,) = webhook["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert apart["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"


def test_keys_and_passwords_are_in_no_resource() -> None:
    secrets = {one["metadata"]["name"]: one for one in graph().all("Secret").values() if "metadata" in one}
    assert not {"slurm-key", "slurm-jwt", "slurm-database"} & set(secrets)


def test_the_accounting_is_on_a_claim_of_its_own_which_grows_in_place() -> None:
    claim = graph().find("PersistentVolumeClaim", "database-claim")
    assert claim["spec"]["resources"] == {"requests": {"storage": "50Gi"}}
    assert claim["spec"]["storageClassName"] == graph().find("StorageClass")["metadata"]["name"]
    (server,) = graph().all("StatefulSet").values()
    assert "volumeClaimTemplates" not in server["spec"]
    claims = [one.get("persistentVolumeClaim") for one in server["spec"]["template"]["spec"]["volumes"]]
    assert {"claimName": claim["metadata"]["name"]} in claims


def test_the_operator_can_drain_nodes() -> None:
    assert list(specs("RestApi")) == ["slurm"]
    assert all(spec["workloadDisruptionProtection"] for spec in specs("NodeSet").values())


@pytest.mark.parametrize("kind", KINDS)
def test_the_definitions_of_the_operator_know_every_field(kind: str) -> None:
    if not kept("slurm-operator-crds"):
        pytest.skip("the charts of slurm-operator are not fetched: make binaries")
    schema = _schema(kind)
    for name, spec in specs(kind).items():
        assert list(_unknown(spec, schema["properties"]["spec"], name)) == []


def _schema(kind: str) -> Any:
    (folder,) = files_of("slurm-operator-crds")
    for path in (folder / "templates").glob("*.yaml"):
        for body in yaml.safe_load_all(path.read_text()):
            if body and body["spec"]["names"]["kind"] == kind:
                return body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    raise AssertionError(kind)


def _unknown(value: Any, schema: Any, path: str) -> Any:
    """Paths of fields that a schema prunes, and of required ones that are absent."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    if isinstance(value, dict):
        yield from (f"{path}.{key} is required" for key in set(schema.get("required", ())) - set(value))
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        for key, one in value.items():
            if key in known:
                yield from _unknown(one, known[key], f"{path}.{key}")
            elif not others:
                yield f"{path}.{key}"
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _unknown(one, schema["items"], f"{path}[{index}]")


def test_scripts_are_where_slurm_looks_for_them() -> None:
    (controller,) = specs("Controller").values()
    assert f"HealthCheckProgram={slinky.SCRIPTS}/health.sh" in controller["extraConf"].splitlines()
    mounts = {one["mountPath"] for one in specs("NodeSet")["p4d"]["slurmd"]["volumeMounts"]}
    assert {slinky.SCRIPTS, "/home", "/fsx", "/dev/shm"} <= mounts
