"""Every supported pair composes in every variant, and each graph is the one that was reviewed.

`python -m tests.stacks.composition.renew` writes the golden files again after a change that is meant.
"""

import datetime
import functools
import importlib
import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from infra import cost
from infra.catalog.aws import facts
from infra.catalog.aws.model import SimulatedResource
from infra.catalog.durations import durations
from infra.catalog.gcp import deploying
from infra.stackspec import StackSpec, load_file
from tests.components.graph import Graph
from tests.stacks.composition import files, google
from tests.stacks.composition.composed import Pair, composed, deployed, stack_spec
from tests.stacks.composition.large import MIXED
from tests.stacks.composition.variants import OFTEN, VARIANTS
from trainstack.preflight.aws.needs import needs

AWS, GCP = ("medium", "aws"), ("medium", "gcp")
SLURM = "large-slurm-aws"
Check = Callable[[Graph, StackSpec], None]


def names(pair: Pair) -> list[Any]:
    """The variants of a pair; those that are not often composed are in `make more`."""
    return [pytest.param(name, marks=() if name in OFTEN else pytest.mark.more) for name in VARIANTS[pair]]


ALL = [pytest.param(pair, *each.values, marks=each.marks) for pair in VARIANTS for each in names(pair)]
# What the program reads from a cloud and never makes there.
PROVIDERS = {"aws": "dev-aws", "gcp": "dev-gcp", "kubernetes": "dev-kubernetes"}


@functools.cache
def variant(pair: Pair, name: str) -> Graph:
    return composed(pair, VARIANTS[pair][name])


@pytest.mark.parametrize("pair", VARIANTS, ids="-on-".join)
def test_the_graph_is_the_reviewed_one(pair: Pair) -> None:
    assert files.graph_file(pair).read_text() == files.graph_text(composed(pair))


@pytest.mark.parametrize(("pair", "name"), ALL)
def test_the_variant_differs_as_reviewed(pair: Pair, name: str) -> None:
    assert files.variant_file(pair, name).read_text() == files.variant_text(
        composed(pair), variant(pair, name)
    )


@pytest.mark.parametrize(("pair", "name"), ALL)
def test_each_resource_has_the_provider_of_its_cloud_and_waits_for_no_circle(pair: Pair, name: str) -> None:
    graph = variant(pair, name)
    for asked in graph.cloud.asked:
        cloud = asked.type.partition(":")[0]
        if cloud in PROVIDERS:
            assert asked.provider.split("::")[-2] == PROVIDERS[cloud], asked.name
    assert [name for name in graph.edges if name in graph.waits_for(name)] == []


@pytest.mark.parametrize(("pair", "name"), ALL)
def test_what_the_webhooks_of_kueue_look_at_comes_after_they_answer(pair: Pair, name: str) -> None:
    graph = variant(pair, name)
    looked_at = [
        f"{asked.type.rpartition(':')[2]}:{asked.name}"
        for asked in graph.cloud.asked
        if "kueue.x-k8s.io" in asked.type
        or (":batch/v1:" in asked.type and asked.properties["metadata"]["namespace"] == "trainstack-smoke")
    ]
    assert {found.partition(":")[0] for found in looked_at} >= {"ResourceFlavor", "ClusterQueue"}
    for found in looked_at:
        assert "Job:dev-queueing-kueue-ready" in graph.waits_for(found)


@pytest.mark.parametrize(("pair", "name"), ALL)
def test_no_secret_passes_through_the_state(pair: Pair, name: str) -> None:
    """Programs in the cluster make logins and keep them in the cloud's store of secrets."""
    graph = variant(pair, name)
    values = (":core/v1:Secret", "secretVersion:SecretVersion", "random/randomPassword:RandomPassword")
    assert [asked.name for asked in graph.cloud.asked if asked.type.endswith(values)] == []
    (user,) = json.loads(graph.find("providers:kubernetes")["kubeconfig"])["users"]
    assert list(user["user"]) == ["exec"]
    for database in (*graph.all("rds/cluster:Cluster").values(), *graph.all("DatabaseInstance").values()):
        assert not {"masterPassword", "rootPassword"} & set(database)


@pytest.mark.parametrize(("pair", "name"), ALL)
def test_the_gate_comes_last_and_only_its_repetition_after_it(pair: Pair, name: str) -> None:
    graph = variant(pair, name)
    gates = [key for key in graph.edges if re.fullmatch(r"Job:dev-smoke-.*-watch", key)]
    spec = stack_spec(pair, VARIANTS[pair][name])
    assert len(gates) == len(spec.validated)
    nodes = {f"NodeGroup:{each}" for each in graph.all("NodeGroup")}
    nodes |= {f"NodePool:{each}" for each in graph.all("NodePool")}
    parts = {"Job:dev-logins-job", "Job:dev-queueing-kueue-ready"}
    for kind in ("NodeGroup", "NodePool", "s3/bucket:Bucket", "storage/bucket:Bucket"):
        parts |= {f"{kind.rpartition(':')[2]}:{each}" for each in graph.all(kind)}
    reachable = graph.waits_for("kubernetes:dev-kubernetes")  # its provider comes with the system nodes
    for gate in gates:
        assert parts <= graph.created_after(gate) | reachable
        after = {key for key in graph.edges if gate in graph.created_after(key)}
        assert {key for key in after if ":dev-smoke-schedule-" not in key} == set()


@pytest.mark.parametrize(("pair", "name"), ALL)
def test_every_namespace_of_ours_is_fenced(pair: Pair, name: str) -> None:
    graph = variant(pair, name)
    spaces = {
        space["metadata"]["name"]: space["metadata"] for space in graph.all("core/v1:Namespace").values()
    }
    fenced = {policy["metadata"]["namespace"] for policy in graph.all("NetworkPolicy").values()}
    assert set(spaces) <= fenced
    for space in spaces.values():
        assert "pod-security.kubernetes.io/enforce" in space["labels"], space["name"]


@pytest.mark.parametrize("name", names(AWS))
def test_the_estimate_counts_what_the_graph_has(name: str) -> None:
    made, spec = variant(AWS, name).cloud, stack_spec(AWS, VARIANTS[AWS][name])
    names = {item.name for item in cost.estimate(spec, datetime.date(2026, 11, 21)).items}
    endpoints = [asked.properties for asked in made.of_type("aws:ec2/vpcEndpoint:VpcEndpoint")]
    databases = made.of_type("aws:rds/cluster:Cluster")
    secrets = len(made.of_type("aws:secretsmanager/secret:Secret"))
    secrets += sum(asked.properties["manageMasterUserPassword"] for asked in databases)
    ends = sum(len(end["subnetIds"]) for end in endpoints if end["vpcEndpointType"] == "Interface")
    sizes = {
        int(asked.properties["blockDeviceMappings"][0]["ebs"]["volumeSize"])
        for asked in made.of_type("aws:ec2/launchTemplate:LaunchTemplate")
    }
    assert names >= {
        f"KMS keys ({len(made.of_type('aws:kms/key:Key'))})",
        f"secrets ({secrets})",
        f"NAT gateways ({len(made.of_type('aws:ec2/natGateway:NatGateway'))})",
        f"public addresses ({len(made.of_type('aws:ec2/eip:Eip'))})",
        f"interface endpoints ({ends})",
    }
    reported = {name.rpartition("(")[2].partition(" ")[0] for name in names if name.startswith("root disks")}
    assert reported == {str(size) for size in sizes}


@pytest.mark.parametrize("name", names(AWS))
def test_alarms_watch_costs_and_have_a_recipient(name: str) -> None:
    graph = variant(AWS, name)
    defaults = graph.find("providers:aws")["defaultTags"]
    everywhere = (json.loads(defaults) if isinstance(defaults, str) else defaults)["tags"]
    machines = [
        {made["resourceType"]: made["tags"] for made in template["tagSpecifications"]}
        for template in graph.all("LaunchTemplate").values()
    ]
    watched = [
        value.removeprefix("user:").split("$")
        for budget in graph.all("Budget").values()
        for row in budget["costFilters"]
        for value in row["values"]
    ]
    for monitor in graph.all("AnomalyMonitor").values():
        tags = json.loads(monitor["monitorSpecification"])["Tags"]
        watched += [[tags["Key"], value] for value in tags["Values"]]
    assert watched
    for key, value in watched:
        assert everywhere[key] == value
        assert [one["instance"][key] for one in machines] == [value] * len(machines)
        assert [one["volume"][key] for one in machines] == [value] * len(machines)
    for budget in graph.all("Budget").values():
        assert "filterExpression" not in budget
        assert all(reported["subscriberEmailAddresses"] for reported in budget["notifications"])
    assert all(reported["subscribers"] for reported in graph.all("AnomalySubscription").values())
    received = {reported["topic"].rpartition(":")[2] for reported in graph.all("TopicSubscription").values()}
    assert received == set(graph.all("Topic"))


@pytest.mark.parametrize("name", names(GCP))
@pytest.mark.parametrize("check", google.CHECKS, ids=lambda check: check.__name__)
def test_what_an_expert_of_google_cloud_looks_for(check: Check, name: str) -> None:
    check(variant(GCP, name), stack_spec(GCP, VARIANTS[GCP][name]))


@pytest.mark.more
def test_each_type_that_a_deployer_must_be_allowed_is_made_by_a_variant() -> None:
    """Else nothing would hold the preflight's conditions against what makes the type."""
    made = [{asked.type for asked in variant(GCP, name).cloud.asked} for name in VARIANTS[GCP]]
    made.append({one.request.type for one in MIXED.worker("usc1").registered})
    wanted = {token for token, row in deploying.permissions().items() if row.of in ("every", "cluster")}
    assert wanted - {"kubernetes:"} <= set().union(*made)


@pytest.mark.parametrize("name", names(GCP))
def test_the_estimate_counts_what_the_graph_has_on_google_cloud(name: str) -> None:
    graph, spec = variant(GCP, name), stack_spec(GCP, VARIANTS[GCP][name])
    names = {item.name for item in cost.estimate(spec, datetime.date(2026, 11, 21)).items}
    assert names >= {f"{what} ({count})" for what, count in google.counted(graph).items()}
    sizes = {int(pool["nodeConfig"]["diskSizeGb"]) for pool in graph.all("NodePool").values()}
    reported = {each.rpartition("(")[2].partition(" ")[0] for each in names if each.startswith("boot disks")}
    assert reported == {str(size) for size in sizes}
    assert any(each.startswith("Managed Lustre") for each in names) == bool(
        graph.all("lustre/instance:Instance")
    )


@pytest.mark.parametrize("token", durations())
def test_durations_are_of_types_of_the_provider(token: str) -> None:
    package, module, name = token.split(":")
    assert hasattr(importlib.import_module(f"pulumi_{package}.{module.partition('/')[0]}"), name)


@pytest.mark.parametrize("pair", VARIANTS, ids="-on-".join)
def test_one_duration_at_most_is_of_a_resource_and_asks_for_inputs_it_has(pair: Pair) -> None:
    for asked in composed(pair).cloud.asked:
        rows = durations().get(asked.type, ())
        assert sum(row.fits(asked.properties) for row in rows) <= 1, asked.name
        assert {name for row in rows for name in row.where} <= set(asked.properties), asked.name


@pytest.mark.parametrize("name", names(AWS))
def test_the_preflight_knows_what_each_variant_takes_of_an_account(name: str) -> None:
    types = [asked.type for asked in variant(AWS, name).cloud.asked if asked.type.startswith("aws:")]
    assert set(types) <= set(facts.permissions)
    wanted = {one.key: one.amount for one in needs(stack_spec(AWS, VARIANTS[AWS][name])).most}
    counted = {
        "vpcs": "aws:ec2/vpc:Vpc",
        "internet_gateways": "aws:ec2/internetGateway:InternetGateway",
        "elastic_ips": "aws:ec2/eip:Eip",
        "eks_clusters": "aws:eks/cluster:Cluster",
    }
    assert {key: types.count(token) for key, token in counted.items()} == {
        key: wanted[key] for key in counted
    }


@pytest.mark.parametrize("row", facts.simulated_resources.values(), ids=lambda row: row.arn)
def test_permissions_are_simulated_with_names_that_the_stack_gives(row: SimulatedResource) -> None:
    """In a path or after a colon; automatic names end in what Pulumi draws, a secret's in what AWS adds."""
    asked = (*variant(AWS, "load-balancer").cloud.asked, *composed(("small", "aws")).cloud.asked)
    others = set(words_of(row, SLURM)) - given_by_slurm()
    assert not others or set(words_of(row, "dev")) <= words_given(asked), row.arn


def words_of(row: SimulatedResource, stack: str) -> list[str]:
    arn = row.arn.format(stack=stack, region="us-east-1", account="123456789012")
    return [word.removesuffix("-AbCdEf") for word in re.split("[:/]", arn) if word.startswith(stack)]


@functools.cache
def given_by_slurm() -> set[str]:
    return words_given(deployed(load_file(SLURM).spec).cloud.asked)


def words_given(every: Iterable[Any]) -> set[str]:
    given = set[str]()
    for asked in every:
        texts = (value for value in asked.properties.values() if isinstance(value, str))
        given |= {f"{asked.name}-0000000", *(word for text in texts for word in re.split("[:/]", text))}
    return given


def test_no_file_is_left_of_a_variant_that_is_gone() -> None:
    expected = {files.graph_file(pair) for pair in VARIANTS}
    expected |= {files.variant_file(pair, name) for pair in VARIANTS for name in VARIANTS[pair]}
    assert set(files.FOLDER.iterdir()) == expected
