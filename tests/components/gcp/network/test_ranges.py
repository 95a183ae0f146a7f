"""The ranges of a stack: they lie in its own, overlap nowhere, stay where they are and hold its nodes."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.gcp.network.ranges import NetworkRanges, RdmaRanges, plan_ranges
from infra.errors import UserError

PODS = st.integers(8, 256)


@st.composite
def blocks(draw: st.DrawFn) -> str:
    prefix = draw(st.integers(16, 20))
    space = draw(st.sampled_from(["10.0.0.0/8", "192.168.0.0/16", "100.64.0.0/10"]))
    inside = ipaddress.IPv4Network(space)
    index = draw(st.integers(0, (1 << (prefix - inside.prefixlen)) - 1))
    return f"{inside.network_address + (index << (32 - prefix))}/{prefix}"


def every(plan: NetworkRanges) -> list[ipaddress.IPv4Network]:
    rdma = [block for one in plan.rdma for block in (one.gvnic, *one.adapters)]
    parts = [plan.nodes, plan.pods, plan.services, plan.services_access, *rdma, *plan.accelerators]
    return [ipaddress.IPv4Network(part) for part in parts]


def test_a_usual_network_has_room_for_512_nodes() -> None:
    assert plan_ranges("10.0.0.0/16", pods_per_node=32) == NetworkRanges(
        nodes="10.0.128.0/20",
        pods="10.0.0.0/17",
        services="10.0.144.0/20",
        services_access="10.0.160.0/20",
        cloud_run="10.0.176.0/22",
        rdma=tuple(
            RdmaRanges(f"10.0.{175 + zone}.0/24", tuple(str(one) for one in quarter.subnets(new_prefix=25)))
            for zone, quarter in enumerate(ipaddress.IPv4Network("10.0.176.0/20").subnets(new_prefix=22))
            if zone
        ),
        accelerators=tuple(f"10.0.{third}.0/21" for third in range(192, 256, 8)),
        max_nodes=512,
        max_pods=512 * 32,
    )


@given(cidr=blocks(), pods=PODS)
def test_ranges_fill_the_network_and_never_overlap(cidr: str, pods: int) -> None:
    plan = every(plan_ranges(cidr, pods_per_node=pods))
    whole = ipaddress.IPv4Network(cidr)

    assert all(part.subnet_of(whole) for part in plan)
    assert not any(a.overlaps(b) for index, a in enumerate(plan) for b in plan[:index])
    # A part is cut in quarters, one of them in four for gVNICs of three zones.
    spare = whole.num_addresses // 16 // 16
    assert sum(part.num_addresses for part in plan) == whole.num_addresses - spare
    assert len(plan) == 4 + 3 * (1 + 8) + 8


@given(cidr=blocks())
def test_cloud_run_has_enough_addresses_apart_from_those_of_a_stack_without_a_cluster(cidr: str) -> None:
    plan = plan_ranges(cidr, pods_per_node=32)
    own = ipaddress.IPv4Network(plan.cloud_run)
    assert own.prefixlen <= 26 and own.subnet_of(ipaddress.IPv4Network(cidr))
    others = (plan.nodes, plan.pods, plan.services, plan.services_access)
    assert not any(own.overlaps(ipaddress.IPv4Network(one)) for one in others)


@given(cidr=blocks(), few=PODS, many=PODS)
def test_more_pods_on_a_node_never_leave_room_for_more_nodes_and_move_nothing(
    cidr: str, few: int, many: int
) -> None:
    few, many = sorted((few, many))
    loose, dense = plan_ranges(cidr, pods_per_node=few), plan_ranges(cidr, pods_per_node=many)

    assert loose.max_nodes >= dense.max_nodes >= 1
    assert every(loose) == every(dense)


@given(cidr=blocks(), pods=PODS)
def test_nodes_that_fit_have_addresses_of_every_kind(cidr: str, pods: int) -> None:
    plan = plan_ranges(cidr, pods_per_node=pods)

    assert plan.max_pods == plan.max_nodes * pods
    # GKE keeps at least as many addresses free as there are pods.
    assert 2 * plan.max_pods <= ipaddress.IPv4Network(plan.pods).num_addresses
    for part in (plan.nodes, *plan.accelerators):
        assert plan.max_nodes <= ipaddress.IPv4Network(part).num_addresses - 4


@given(cidr=blocks(), pods=PODS)
def test_a_larger_network_never_holds_fewer_nodes(cidr: str, pods: int) -> None:
    whole = ipaddress.IPv4Network(cidr)
    if whole.prefixlen > 16:
        around = str(whole.supernet())
        assert (
            plan_ranges(around, pods_per_node=pods).max_nodes
            > plan_ranges(cidr, pods_per_node=pods).max_nodes
        )


@given(cidr=blocks(), pods=PODS, extra=st.integers(1, 50))
def test_exactly_the_nodes_that_fit_are_accepted(cidr: str, pods: int, extra: int) -> None:
    room = ipaddress.IPv4Network(plan_ranges(cidr, pods_per_node=pods).pods).num_addresses
    # The documented table: 8 pods take a /28, up to 16 a /27, up to 32 a /26, and so on.
    each = next(16 << step for step in range(6) if pods <= 8 << step)

    plan_ranges(cidr, pods_per_node=pods, nodes={pods: room // each})
    with pytest.raises(UserError):
        plan_ranges(cidr, pods_per_node=pods, nodes={pods: room // each + extra})


def test_too_many_nodes_are_refused_with_the_arithmetic_and_a_range_that_holds_them() -> None:
    with pytest.raises(UserError) as refused:
        plan_ranges("10.4.16.0/20", pods_per_node=32, nodes={32: 40, 64: 6})

    (problem,) = refused.value.problems
    assert problem.path == "cidr"
    assert "2048 addresses" in problem.rule
    assert "= 3328" in problem.rule
    assert "10.4.0.0/19" in problem.fix
    plan_ranges("10.4.0.0/19", pods_per_node=32, nodes={32: 40, 64: 6})


def test_where_no_range_is_large_enough_fewer_nodes_are_the_way_out() -> None:
    with pytest.raises(UserError) as refused:
        plan_ranges("10.0.0.0/16", pods_per_node=256, nodes={256: 65})

    assert "/16" in refused.value.problems[0].fix


@pytest.mark.parametrize(
    ("cidr", "said"),
    [
        ("10.0.0.0/15", "must be /16 to /20"),
        ("10.0.0.0/21", "must be /16 to /20"),
        ("10.0.0.1/16", "not an IPv4 network"),
        ("ten", "not an IPv4 network"),
        # Of the public blueprint of A3 High: public addresses of others.
        ("192.169.0.0/16", "not a private range"),
        ("172.17.0.0/16", "bridge"),
    ],
)
def test_ranges_that_cannot_be_are_refused(cidr: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        plan_ranges(cidr, pods_per_node=32)

    assert [problem.path for problem in refused.value.problems] == ["cidr"]
    assert said in refused.value.problems[0].rule
