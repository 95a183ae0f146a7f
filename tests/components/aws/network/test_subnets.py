import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.aws.network.subnets import ZoneSubnets, plan_subnets
from infra.errors import UserError

REGION = "us-east-1"
# EKS lacks one of the six zones of this region.
ZONES = [f"{REGION}{letter}" for letter in "abcde"]


@st.composite
def vpcs(draw: st.DrawFn) -> str:
    prefix = draw(st.integers(16, 20))
    second = draw(st.integers(0, 255))
    third = draw(st.integers(0, 255)) & (0xFF << (24 - prefix)) & 0xFF if prefix > 16 else 0
    return f"10.{second}.{third}.0/{prefix}"


zone_lists = st.lists(st.sampled_from(ZONES), min_size=2, max_size=5, unique=True)


def networks(plan: tuple[ZoneSubnets, ...]) -> list[ipaddress.IPv4Network]:
    blocks = [block for zone in plan for block in (zone.private, zone.public, zone.balancer)]
    return [ipaddress.IPv4Network(block) for block in blocks]


def test_a_usual_vpc_is_cut_into_large_private_and_small_public_subnets() -> None:
    plan = plan_subnets("10.0.0.0/16", REGION, ["us-east-1a", "us-east-1b", "us-east-1c"])

    assert plan == (
        ZoneSubnets("us-east-1a", "10.0.0.0/19", "10.0.224.0/22", "10.0.16.0/20", "10.0.192.0/22"),
        ZoneSubnets("us-east-1b", "10.0.32.0/19", "10.0.228.0/22", "10.0.48.0/20", "10.0.196.0/22"),
        ZoneSubnets("us-east-1c", "10.0.64.0/19", "10.0.232.0/22", "10.0.80.0/20", "10.0.200.0/22"),
    )


@given(cidr=vpcs(), zones=zone_lists)
def test_subnets_lie_in_the_vpc_and_never_overlap(cidr: str, zones: list[str]) -> None:
    vpc = ipaddress.IPv4Network(cidr)
    subnets = networks(plan_subnets(cidr, REGION, zones))

    assert all(subnet.subnet_of(vpc) for subnet in subnets)
    assert not any(a.overlaps(b) for i, a in enumerate(subnets) for b in subnets[:i])


@given(cidr=vpcs(), zones=zone_lists)
def test_every_zone_has_room_for_prefixes_and_for_single_addresses(cidr: str, zones: list[str]) -> None:
    for zone in plan_subnets(cidr, REGION, zones):
        private, prefixes = ipaddress.IPv4Network(zone.private), ipaddress.IPv4Network(zone.pod_prefixes)

        assert prefixes.subnet_of(private)
        assert prefixes.num_addresses // 16 >= 16, "fewer /28 prefixes than 256 pods need"
        assert private.num_addresses - prefixes.num_addresses >= 256
        assert ipaddress.IPv4Network(zone.public).prefixlen <= 28, "AWS accepts no smaller subnet"
        assert ipaddress.IPv4Network(zone.balancer).prefixlen <= 27, "nor a load balancer a smaller one"


@given(cidr=vpcs(), zones=zone_lists, data=st.data())
def test_no_subnet_moves_when_zones_come_go_or_change_places(
    cidr: str, zones: list[str], data: st.DataObject
) -> None:
    before = {zone.zone: zone for zone in plan_subnets(cidr, REGION, zones)}
    added = [zone for zone in ZONES if zone not in zones]
    after = data.draw(st.permutations([*zones, *added]))

    assert {zone.zone: zone for zone in plan_subnets(cidr, REGION, after)}.items() >= before.items()


@pytest.mark.parametrize(
    ("cidr", "zones", "paths"),
    [
        ("10.0.0.0/15", ZONES[:2], ["cidr"]),
        ("10.0.0.0/21", ZONES[:2], ["cidr"]),
        ("10.0.0.1/16", ZONES[:2], ["cidr"]),
        ("8.8.0.0/16", ZONES[:2], ["cidr"]),
        ("ten", ZONES[:2], ["cidr"]),
        ("10.0.0.0/16", ZONES[:1], ["zones"]),
        ("10.0.0.0/16", [ZONES[0], ZONES[0]], ["zones", "zones"]),
        ("10.0.0.0/16", ["eu-west-1a", "us-east-1b"], ["zones[0]"]),
        ("10.0.0.0/16", ["us-east-1a", "us-east-1g"], ["zones[1]"]),
        ("10.0.0.0/16", ["us-west-2-lax-1a", "us-east-1"], ["zones[0]", "zones[1]"]),
        ("8.0.0.0/8", ["us-east-1z"], ["cidr", "cidr", "zones[0]", "zones"]),
    ],
)
def test_what_cannot_be_is_refused_with_every_problem_at_once(
    cidr: str, zones: list[str], paths: list[str]
) -> None:
    with pytest.raises(UserError) as refused:
        plan_subnets(cidr, REGION, zones)

    assert [problem.path for problem in refused.value.problems] == paths
