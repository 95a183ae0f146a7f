"""Preflight of a stack with Slurm on Google Cloud: what Cluster Director takes of a project."""

from collections import Counter

import pytest

from infra import stackspec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.slurm.layout import SlurmLayout
from tests.trainstack.preflight.gcp.asking import ME, Google, aggregated, asked, states
from trainstack.preflight.answers import State
from trainstack.preflight.gcp import SLURM_CHECKS, apis, permissions, places, policies, way_in
from trainstack.preflight.gcp.deployment import preflight_of
from trainstack.preflight.gcp.needs import needs
from trainstack.preflight.gcp.project import Project
from trainstack.preflight.machine import LocalMachine

SPEC = stackspec.load_file("large-slurm-gcp").spec


def slurm(google: Google, machine: LocalMachine | None = None) -> Project:
    assert isinstance(SPEC.layout, SlurmLayout) and isinstance(SPEC.on, GcpSpec)
    return Project(SPEC, SPEC.layout, SPEC.on, google.session(), lambda: ME, machine or LocalMachine())


def test_rights_and_apis_are_those_of_cluster_director() -> None:
    wanted = permissions.permissions(SPEC)
    assert {"hypercomputecluster.clusters.create", "iap.tunnelInstances.accessViaIAP"} <= {*wanted}
    assert not [one for one in wanted if one.startswith(("container.", "cloudsql."))]
    assert {"hypercomputecluster.googleapis.com", "oslogin.googleapis.com"} <= {*apis.wanted_by(SPEC)}
    assert "container.googleapis.com" not in apis.wanted_by(SPEC)


def test_a_missing_right_is_named() -> None:
    granted = [one for one in permissions.permissions(SPEC) if not one.startswith("hypercompute")]
    google = Google({"cloudresourcemanager.projects.testIamPermissions": {"permissions": granted}})
    (answer,) = asked(permissions.deploying_in, slurm(google))
    assert answer.state is State.SHORT and "hypercomputecluster.clusters.create" in answer.text


def test_the_quotas_are_those_of_nodes_and_login_node() -> None:
    most = Counter[str]()
    for one in needs(SPEC).most:
        most[one.key] += int(one.amount)
    # 8 machines with 8 GPUs; 4 of 16 vCPUs and the login node with 4.
    assert most["preemptible_h100_mega"] == most["gpus_all_regions"] == 64
    assert most["n2_cpus"] == 68
    assert (most["networks"], most["in_use_addresses"]) == (1, 1)


def test_machines_of_the_login_node_are_asked_for() -> None:
    google = Google({"compute.machineTypes.aggregatedList": aggregated("machineTypes", {})})
    assert any(one.text.startswith("layout.login") for one in asked(places.types, slurm(google)))


@pytest.mark.parametrize(("path", "state"), [(None, State.SHORT), ("/usr/bin/gcloud", State.READY)])
def test_up_needs_gcloud(path: str | None, state: State) -> None:
    machine = LocalMachine(finds=lambda _: path)
    assert states(asked(way_in.login, slurm(Google(), machine))) == [state]


def test_policies_about_nodes_of_gke_are_not_asked_for() -> None:
    google = Google({"orgpolicy.projects.policies.getEffectivePolicy": {"spec": {}}})
    asked(policies.blocking, slurm(google))
    names = {given["name"].rpartition("/")[2] for given in google.given(
        "orgpolicy.projects.policies.getEffectivePolicy"
    )}  # fmt: skip
    assert "gcp.resourceLocations" in names and "compute.vmCanIpForward" not in names


def test_the_command_has_these_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infra.clouds.gcp.login.session", lambda *_: (Google().session(), "example-ml-dev"))
    made = preflight_of(SPEC)
    assert {*SLURM_CHECKS} == {*made.checks}
    assert {*made.before_up} <= {*SLURM_CHECKS}
    assert not {"kubernetes-version", "gke-auth-plugin"} & {*made.checks}
