"""Ranges and clusters that Google Cloud accepts: pure functions of specs and components."""

import pytest

from infra.catalog.gcp import clusters, network
from infra.catalog.gcp.gke import maintenance_problems


@pytest.mark.parametrize(
    ("pods", "block"),
    # The table of GKE's documentation, "Configure maximum Pods per node", at both ends of each row.
    [
        *((8, 28), (9, 27), (16, 27), (17, 26), (32, 26), (33, 25), (64, 25)),
        *((65, 24), (110, 24), (128, 24), (129, 23), (256, 23)),
    ],
)
def test_a_node_takes_the_documented_block_of_pod_addresses(pods: int, block: int) -> None:
    assert network.pod_block(pods) == block
    assert network.pod_addresses(pods) == 2 ** (32 - block) >= 2 * pods


@pytest.mark.parametrize(
    ("days", "hours", "enough"),
    [
        (["SA"], 12, True),
        (["SA"], 11, False),
        (["SA", "SU"], 6, True),
        (["SA", "SU"], 5, False),
        # The same day twice is one window.
        (["SA", "SA"], 6, False),
        (["MO", "TU", "WE"], 4, True),
        ([], 24, False),
    ],
)
def test_windows_of_48_hours_in_32_days_are_enough(days: list[str], hours: int, enough: bool) -> None:
    found = [one for one in maintenance_problems("days", days, "hours", hours) if one.path == "hours"]
    assert (not found) is enough


@pytest.mark.parametrize(
    ("group", "good"),
    [("gke-security-groups@example.com", True), ("ml@example.com", False), ("gke-security-groups", False)],
)
def test_rbac_knows_the_members_of_one_group(group: str, good: bool) -> None:
    assert (not list(clusters.group_problems("groups", group))) is good


def test_system_nodes_are_counted_with_their_own_pods() -> None:
    assert network.nodes_by_pods(32, jobs=10, system=6) == {32: 10, 64: 6}
    assert network.nodes_by_pods(64, jobs=10, system=6) == {64: 16}
    assert network.nodes_by_pods(110, jobs=10, system=6) == {110: 16}
