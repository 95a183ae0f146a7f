"""The critical path, and the forecast made of it."""

import datetime
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.catalog.durations import Durations
from infra.catalog.gcp.deploying import IAM_PAUSE_S
from infra.catalog.rows import Duration
from trainstack.forecast import forecast
from trainstack.forecast.critical_path import Step, longest


def test_the_longest_path_is_not_the_one_with_most_steps() -> None:
    steps = [
        Step("a", 1),
        Step("b", 1, ("a",)),
        Step("c", 1, ("b",)),
        Step("d", 9, ("a", "elsewhere")),
        Step("e", 0, ("c", "d")),
    ]
    found = longest(reversed(steps))
    assert found.seconds == 10
    assert [step.key for step in found.steps] == ["a", "d"] or found.steps[-1].key == "e"
    assert sum(step.seconds for step in found.steps) == found.seconds
    assert longest([]).seconds == 0


def test_circles_and_doubles_are_refused() -> None:
    with pytest.raises(ValueError, match="cycle"):
        longest([Step("a", 1, ("b",)), Step("b", 1, ("a",)), Step("c", 1)])
    with pytest.raises(ValueError, match="duplicate"):
        longest([Step("a", 1), Step("a", 2)])


@settings(max_examples=60)
@given(st.data())
def test_it_is_as_long_as_the_longest_of_all_chains(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6))
    edges = data.draw(st.sets(st.sampled_from(list(itertools.combinations(range(6), 2)))))
    seconds = data.draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    steps = [Step(str(to), seconds[to], tuple(str(a) for a, b in edges if b == to)) for to in range(count)]
    chains = [
        chain
        for size in range(1, count + 1)
        for chain in itertools.combinations(range(count), size)
        if all(pair in edges for pair in itertools.pairwise(chain))
    ]
    found = longest(steps)
    assert found.seconds == max(sum(seconds[one] for one in chain) for chain in chains)
    assert sum(step.seconds for step in found.steps) == found.seconds


def logged(token: str, *seconds: int, **where: str | bool) -> Durations:
    day = datetime.date(2026, 1, 1)
    return {token: (Duration(type=token, seconds=seconds, where=where, source="s", date=day),)}


def resource(name: str, token: str, **more: object) -> dict[str, object]:
    return {"urn": f"urn:pulumi:dev::p::{token}::{name}", "type": token, "custom": True, **more}


def test_a_forecast_follows_dependencies_parents_and_providers() -> None:
    cluster = resource("cluster", "aws:eks/cluster:Cluster")
    provider = resource("inside", "pulumi:providers:kubernetes", dependencies=[cluster["urn"]])
    pod = resource("pod", "kubernetes:core/v1:Pod", provider=f"{provider['urn']}::some-id")
    child = resource("child", "x:index:Child", parent=pod["urn"])
    old = resource("old", "aws:eks/cluster:Cluster", delete=True)
    durations = {**logged("aws:eks/cluster:Cluster", 900, 300, 600), **logged("x:index:Child", 60, 120, 180)}
    found = forecast([child, pod, provider, cluster, old], durations)
    assert (found.shortest, found.expected.seconds, found.longest) == (360, 720, 1080)
    assert found.path == "cluster 10 min 00 s > child 2 min 00 s"
    assert found.unknown == ("kubernetes:core/v1:Pod",)


def test_pauses_for_iam_begin_when_what_it_applies_is_known() -> None:
    hooks = {"BeforeCreate": ["gcp:sql/user:User_user_before_create_0"]}
    database = resource("database", "gcp:sql/databaseInstance:DatabaseInstance")
    user = resource("user", "gcp:sql/user:User", dependencies=[database["urn"]], resourceHooks=hooks)
    durations = logged("gcp:sql/databaseInstance:DatabaseInstance", 300)
    assert forecast([database, user], durations).expected.seconds == 300 + IAM_PAUSE_S
    agent = resource("agent", "gcp:projects/serviceIdentity:ServiceIdentity")
    granted = resource(
        "use",
        "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember",
        dependencies=[database["urn"], agent["urn"]],
        inputs={"member": "serviceAccount:a"},
        propertyDependencies={"member": [agent["urn"]]},
        resourceHooks=hooks,
    )
    assert forecast([database, agent, granted], durations).expected.seconds == 300


def test_a_forecast_names_unknown_parts_and_bounds_nothing_by_its_middle() -> None:
    cluster = resource("cluster", "aws:eks/cluster:Cluster")
    durations = logged("aws:eks/cluster:Cluster", 300, 600, 900)
    whole = forecast([cluster], durations)
    assert (whole.unknown, whole.line.partition(" to create")[0]) == ((), "about 10 min (5 to 15)")
    partly = forecast([cluster, resource("pod", "kubernetes:core/v1:Pod")], durations)
    assert partly.line.startswith(whole.line) and partly.line != whole.line


def test_a_duration_of_some_of_a_types_resources_says_nothing_about_the_others() -> None:
    token = "aws:ec2/vpcEndpoint:VpcEndpoint"
    durations = {
        token: logged(token, 6, vpcEndpointType="Gateway")[token]
        + logged(token, 113, vpcEndpointType="Interface")[token]
    }

    def seconds(kind: str) -> float:
        return forecast(
            [resource("one", token, inputs={"vpcEndpointType": kind})], durations
        ).expected.seconds

    assert (seconds("Gateway"), seconds("Interface")) == (6, 113)
    other = forecast([resource("one", token, inputs={"vpcEndpointType": "GatewayLoadBalancer"})], durations)
    assert (other.expected.seconds, other.unknown) == (0, (f"{token} GatewayLoadBalancer",))
