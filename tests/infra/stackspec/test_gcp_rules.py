"""Invalid specs of Google Cloud are refused, with code and path."""

import copy
from typing import Any

import pytest

from infra import stackspec
from tests.infra.stackspec.broken_specs_gcp import ACCEPTED, BROKEN
from tests.infra.stackspec.stack_files import Values, paths, problems

_RESERVATION = "projects/research-1/reservations/h100"


def put(values: Values, steps: tuple[str | int, ...], value: Any) -> None:
    place = values["spec"]
    for step in steps[:-1]:
        place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
    place[steps[-1]] = value


_LUSTRE = {"capacity_gib": 9000, "throughput_mb_s_per_tib": 1000, "zone": "us-central1-a"}
_FIRST: tuple[str | int, ...] = ("layout", "pools", 0)


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_deployed_is_refused_by_name(gcp: Values, case: str) -> None:
    stackspec.load("dev", copy.deepcopy(gcp), "f")  # it is this change, and nothing else, that breaks it
    steps, value, path, code = BROKEN[case]
    put(gcp, steps, value)
    assert (code, path) in [(one.code, one.path) for one in problems(gcp)]


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_can_be_deployed_is_accepted(gcp: Values, case: str) -> None:
    for steps, value in ACCEPTED[case].items():
        put(gcp, steps, value)
    assert stackspec.load("dev", gcp, "f").spec.cloud == "gcp"


def test_what_is_waited_for_is_not_placed_closely(gcp: Values) -> None:
    put(gcp, (*_FIRST, "purchase"), {"kind": "flex_start"})
    put(gcp, (*_FIRST, "rdma"), False)
    put(gcp, ("on", "pools"), {"h100": {"compact": True}})
    (problem,) = problems(gcp)
    assert (problem.path, problem.against) == ("on.pools.h100.compact", "layout.pools[0].purchase.kind")


def test_nodes_with_rdma_are_not_placed_by_a_policy(gcp: Values) -> None:
    put(gcp, (*_FIRST, "machine"), "a3-ultragpu-8g")
    put(gcp, (*_FIRST, "purchase"), {"kind": "spot"})
    put(gcp, (*_FIRST, "zones"), ["us-central1-b"])
    put(gcp, ("on", "pools"), {"h100": {"compact": True}})
    assert ("compact-with-rdma", "on.pools.h100.compact") in [(one.code, one.path) for one in problems(gcp)]


def test_queued_nodes_are_not_there_before(gcp: Values) -> None:
    put(gcp, (*_FIRST, "purchase"), {"kind": "queued"})
    put(gcp, (*_FIRST, "min_nodes"), 1)
    assert "layout.pools[0].min_nodes" in paths(gcp)


def test_gke_makes_networks_from_a_version_on(gcp: Values) -> None:
    put(gcp, (*_FIRST, "machine"), "a3-ultragpu-8g")
    put(gcp, (*_FIRST, "purchase"), {"kind": "spot"})
    put(gcp, (*_FIRST, "zones"), ["us-central1-b"])
    put(gcp, ("layout", "kubernetes_version"), "1.33")
    # The queues refuse such a version too.
    assert paths(gcp) == {"layout.kubernetes_version", "on.accelerator_networks"}
    put(gcp, ("on", "accelerator_networks"), "classic")
    assert paths(gcp) == {"layout.kubernetes_version"}


_ULTRA = {
    "name": "h200",
    "machine": "a3-ultragpu-8g",
    "purpose": "training",
    "purchase": {"kind": "spot"},
    "zones": ["us-central1-b"],
    "rdma": True,
    "min_nodes": 0,
    "max_nodes": 2,
}


def test_pools_of_a_cluster_get_networks_in_one_way(gcp: Values) -> None:
    gcp["spec"]["layout"]["pools"].append(dict(_ULTRA))
    (problem,) = problems(gcp)
    assert (problem.code, problem.path) == ("networks-mixed", "on.accelerator_networks")
    assert problem.against == "layout.pools[0]" and "classic" in problem.fix
    put(gcp, ("on", "accelerator_networks"), "classic")
    stackspec.load("dev", copy.deepcopy(gcp), "f")  # with ranges of their own


def test_objects_of_rdma_without_a_letter_are_in_a_zone_of_the_spec(gcp: Values) -> None:
    pools = gcp["spec"]["layout"]["pools"]
    pools[0] |= {**_ULTRA, "name": "h100", "max_nodes": 20}
    put(gcp, ("on", "accelerator_networks"), "classic")
    stackspec.load("dev", copy.deepcopy(gcp), "f")
    pools.append({**_ULTRA, "name": "more", "zones": ["us-central1-a"]})
    # The region has these machines in one zone.
    assert {one.code for one in problems(gcp)} == {"first-rdma-zone-missing", "machine-not-in-zone"}
    put(gcp, ("on", "first_rdma_zone"), "us-central1-b")
    assert {one.code for one in problems(gcp)} == {"machine-not-in-zone"}
    pools.pop()
    stackspec.load("dev", copy.deepcopy(gcp), "f")
    put(gcp, ("on", "first_rdma_zone"), "europe-west4-b")
    assert paths(gcp) == {"on.first_rdma_zone"}


def test_a_machine_that_is_not_supported_mixes_no_networks(gcp: Values) -> None:
    """Its only fix is another machine."""
    gcp["spec"]["layout"]["pools"].append({**_ULTRA, "machine": "a4x-maxgpu-4g-metal"})
    codes = {one.code for one in problems(gcp)}
    assert "machine-not-supported" in codes and "networks-mixed" not in codes


def test_networks_of_rdma_have_ranges_for_all_their_nodes(gcp: Values) -> None:
    gcp["spec"]["layout"]["pools"][0] |= {**_ULTRA, "name": "h100", "max_nodes": 100}
    gcp["spec"]["layout"]["pools"].append({**_ULTRA, "max_nodes": 24})
    put(gcp, ("on", "accelerator_networks"), "classic")
    stackspec.load("dev", copy.deepcopy(gcp), "f")  # a /25 for each adapter
    put(gcp, ("layout", "pools", 0, "max_nodes"), 101)
    assert ("gpu-networks-too-small", "layout.network_cidr") in [
        (one.code, one.path) for one in problems(gcp)
    ]
    put(gcp, ("on", "accelerator_networks"), "managed")
    stackspec.load("dev", copy.deepcopy(gcp), "f")


def test_a_cluster_has_no_login_of_identity_aware_proxy(gcp: Values) -> None:
    client = {"client_id": "1-a.apps.googleusercontent.com", "client_secret": "projects/ml/secrets/s"}
    put(gcp, ("on", "login"), client)
    (problem,) = problems(gcp)
    assert (problem.code, problem.path) == ("needs-no-cluster", "on.login")


@pytest.mark.parametrize(
    ("field", "value"), [("client_id", "me"), ("client_secret", "GOCSPX-0a1b2c"), ("client_secret", "s")]
)
def test_a_client_has_an_id_and_the_name_of_its_secret(gcp: Values, field: str, value: str) -> None:
    client = {"client_id": "1-a.apps.googleusercontent.com", "client_secret": "projects/ml/secrets/s"}
    put(gcp, ("on", "login"), {**client, field: value})
    assert paths(gcp) == {f"on.login.{field}"}


@pytest.mark.parametrize("secret", ["GOCSPX-0a1b2c", 20261128])
def test_a_secret_in_the_place_of_its_name_is_not_shown(gcp: Values, secret: object) -> None:
    client = {"client_id": "1-a.apps.googleusercontent.com", "client_secret": secret}
    put(gcp, ("on", "login"), client)
    (problem,) = problems(gcp)
    assert str(secret) not in str(problem)


def test_a_validation_has_whole_gpus(gcp: Values) -> None:
    put(gcp, ("smoke", "pools"), ["a100"])
    stackspec.load("dev", copy.deepcopy(gcp), "f")
    put(gcp, ("layout", "pools", 1, "own_queue"), True)
    put(gcp, ("on", "pools"), {"a100": {"sharing": {"kind": "time_sharing", "clients": 2}}})
    assert paths(gcp) == {"smoke.pools"}


def test_a_network_that_is_too_small_shows_the_arithmetic(gcp: Values) -> None:
    put(gcp, ("layout", "network_cidr"), "10.0.0.0/20")
    put(gcp, ("data", "homes"), False)
    put(gcp, ("on", "pods_per_node"), 64)
    stackspec.load("dev", copy.deepcopy(gcp), "f")  # 16 nodes: 6 of the system pool, 4, 4 and 2 of the others
    put(gcp, ("on", "pods_per_node"), 65)
    (problem,) = problems(gcp)
    assert (problem.code, problem.against) == ("network-too-small", "on.pods_per_node")
    assert "2048" in problem.rule and "= 4096" in problem.rule


def test_system_nodes_take_room_for_their_own_pods(gcp: Values) -> None:
    put(gcp, ("layout", "network_cidr"), "10.0.0.0/20")
    put(gcp, ("data", "homes"), False)
    put(gcp, ("layout", "pools", 2, "max_nodes"), 12)  # 20 of jobs take 20 x 64, 6 of the system 6 x 128
    stackspec.load("dev", copy.deepcopy(gcp), "f")
    put(gcp, ("layout", "pools", 2, "max_nodes"), 13)
    assert paths(gcp) == {"layout.network_cidr"}


@pytest.mark.parametrize("name", ["dev-gcp", "prod-gcp"])
def test_the_stacks_of_this_repository_are_accepted(name: str) -> None:
    spec = stackspec.load_file(name).spec
    assert spec.validated
    assert spec.data.protect is (spec.environment == "prod")
