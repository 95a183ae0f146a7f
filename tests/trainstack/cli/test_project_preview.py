"""`trainstack preview --project`: prices, what has none, and the exit codes of limits."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.catalog.aws import facts as aws
from infra.catalog.gcp import facts as gcp
from infra.errors import UserError
from tests.trainstack.cli.command import run, run_json

URN = "urn:pulumi:dev::shop::"
LATER = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
AWS, GCP = f"{URN}pulumi:providers:aws::default", f"{URN}pulumi:providers:gcp::default"


def row(kind: str, name: str, /, **inputs: Any) -> dict[str, Any]:
    provider = {"aws": f"{AWS}::1", "gcp": f"{GCP}::1"}.get(kind.partition(":")[0], f"{URN}x::y::1")
    more = {"propertyDependencies": inputs.pop("of", {})}
    urn = f"{URN}{kind}::{name}"
    return {"urn": urn, "type": kind, "custom": True, "inputs": inputs, "provider": provider, **more}


PROVIDERS = (
    {"urn": AWS, "type": "pulumi:providers:aws", "custom": True, "inputs": {"region": "us-east-1"}},
    {"urn": GCP, "type": "pulumi:providers:gcp", "custom": True, "inputs": {"region": "us-central1"}},
)


def plan(folder: Path, new: list[dict[str, Any]], old: list[dict[str, Any]] | None = None) -> Path:
    before = {one["urn"]: one for one in (*PROVIDERS, *(old or []))}
    after = {one["urn"]: one for one in (*PROVIDERS, *new)}
    steps = []
    for urn in {**before, **after}:
        sides = {"oldState": before.get(urn), "newState": after.get(urn)}
        op = "create" if urn not in before else "delete" if urn not in after else "update"
        steps.append({"op": op, "urn": urn, **{key: one for key, one in sides.items() if one}})
    path = folder / "plan.json"
    path.write_text(json.dumps({"steps": steps, "changeSummary": {}}))
    return path


def preview(path: Path, *more: str) -> tuple[int, Any]:
    return run_json("preview", "--project", str(path), *more)


def hour(machine: str, region: str = "us-east-1", capacity: Any = "on_demand") -> float:
    price = aws.price(machine, region, capacity)
    assert price is not None
    return price.usd_per_hour_expected


def service(key: str, cloud: Any = aws, region: str = "us-east-1") -> float:
    price = cloud.service_price(key, region)
    assert price is not None
    return float(price.usd)


TEMPLATE = row("aws:ec2/launchTemplate:LaunchTemplate", "t", instanceType="g5.xlarge")
POOL = {"minSize": 1, "desiredSize": 2, "maxSize": 4}
DISK = {"volumeType": "gp3", "volumeSize": 100}
SPOT = {"instanceTypes": ["g6.2xlarge"], "capacityType": "SPOT", "diskSize": 20, "scalingConfig": POOL}
SQL = {"tier": "db-f1-micro", "diskSize": 20}
IOWA = gcp, "us-central1"
KNOWN: list[tuple[dict[str, Any], list[float]]] = [
    (
        row("aws:ec2/instance:Instance", "a", instanceType="g5.xlarge", rootBlockDevice=DISK),
        [730 * hour("g5.xlarge"), 100 * service("ebs_gp3")],
    ),
    (row("aws:ebs/volume:Volume", "a", type="gp3", size=50), [50 * service("ebs_gp3")]),
    (row("aws:eks/cluster:Cluster", "a"), [730 * service("eks_cluster")]),
    (
        row("aws:eks/nodeGroup:NodeGroup", "a", **SPOT),
        [2 * 730 * hour("g6.2xlarge", capacity="spot"), 40 * service("ebs_gp3")],
    ),
    (row("aws:alb/loadBalancer:LoadBalancer", "a"), [730 * service("application_load_balancer")]),
    (row("aws:ec2/natGateway:NatGateway", "a"), [730 * service("nat_gateway")]),
    (row("aws:kms/key:Key", "a"), [service("kms_key")]),
    (
        row("aws:ec2/vpcEndpoint:VpcEndpoint", "a", vpcEndpointType="Interface", subnetIds=["1", "2"]),
        [2 * 730 * service("interface_endpoint")],
    ),
    (
        row("gcp:container/cluster:Cluster", "a", location="us-central1", removeDefaultNodePool=True),
        [730 * service("gke_cluster", *IOWA)],
    ),
    (
        row("gcp:compute/disk:Disk", "a", zone="us-central1-a", type="pd-balanced", size=10),
        [10 * service("pd_balanced", *IOWA)],
    ),
    (
        row("gcp:sql/databaseInstance:DatabaseInstance", "a", region="us-central1", settings=SQL),
        [730 * service("cloud_sql_db-f1-micro_zonal", *IOWA), 20 * service("cloud_sql_ssd_zonal", *IOWA)],
    ),
]


@pytest.mark.parametrize(("resource", "parts"), KNOWN)
def test_a_resource_is_priced_from_the_catalog(
    resource: dict[str, Any], parts: list[float], tmp_path: Path
) -> None:
    code, found = preview(plan(tmp_path, [resource]), "--max-monthly", "1e6")
    (one,) = found["resources"]
    assert (code, one["standing"]) == (0, "priced")
    assert [part["expected_usd"] for part in one["parts"]] == pytest.approx(parts, abs=0.01)
    assert found["monthly_usd"]["expected"] == pytest.approx(sum(parts), abs=0.02)


def test_a_launch_template_of_the_program_has_the_machine(tmp_path: Path) -> None:
    group = row(
        "aws:autoscaling/group:Group", "g", minSize=0, maxSize=2, launchTemplate={"id": LATER},
        of={"launchTemplate": [TEMPLATE["urn"]]},
    )  # fmt: skip
    _, found = preview(plan(tmp_path, [TEMPLATE, group]))
    priced = next(one for one in found["resources"] if one["name"] == "g")
    assert priced["monthly_usd"] == {
        "minimum": 0.0, "expected": 0.0, "maximum": pytest.approx(2 * 730 * hour("g5.xlarge"), abs=0.01),
    }  # fmt: skip


UNKNOWN = [
    row("aws:ec2/instance:Instance", "a", instanceType=LATER),
    row("aws:ec2/instance:Instance", "a", instanceType="z9.none"),
    row("aws:ec2/instance:Instance", "a", instanceType="g5.xlarge", tenancy="dedicated"),
    row("aws:ec2/instance:Instance", "a", instanceType="g5.xlarge"),
    row("aws:ebs/volume:Volume", "a", type="io2", size=50),
    row("aws:rds/clusterInstance:ClusterInstance", "a", instanceClass="db.r6g.large"),
    row("aws:mq/broker:Broker", "a"),
    row("azure:core/group:Group", "a"),
    row("gcp:compute/instance:Instance", "a", machineType="z9-none", zone="us-central1-a"),
    row("gcp:compute/disk:Disk", "a", zone="mars-north1-a", type="pd-balanced", size=10),
    row("gcp:container/cluster:Cluster", "a", location="us-central1", enableAutopilot=True),
    row("kubernetes:core/v1:Service", "a", spec={"type": "LoadBalancer"}),
    row("kubernetes:core/v1:PersistentVolumeClaim", "a", spec={}),
]


@pytest.mark.parametrize("resource", UNKNOWN)
def test_an_unknown_price_is_named_and_makes_a_limit_undetermined(
    resource: dict[str, Any], tmp_path: Path
) -> None:
    path = plan(tmp_path, [resource])
    code, found = preview(path)
    assert (code, found["counts"]["unknown"], found["undetermined"]) == (0, 1, [])
    (one,) = found["resources"]
    assert one["unpriced"] and all(part["reason"] for part in one["unpriced"])
    assert one["monthly_usd"] is None or one["monthly_usd"]["expected"] > 0
    assert preview(path, "--max-monthly", "1e6")[1]["undetermined"] == [resource["urn"]]
    assert [preview(path, option, "1e6")[0] for option in ("--max-monthly", "--max-increase")] == [4, 4]
    assert preview(path, "--max-monthly", "1e6", "--allow-unpriced")[0] == 0


@pytest.mark.parametrize(
    ("kind", "standing"),
    [
        ("aws:iam/role:Role", "free"),
        ("aws:ec2/vpc:Vpc", "free"),
        ("aws:s3/bucketV2:BucketV2", "by_usage"),
        ("aws:lambda/function:Function", "by_usage"),
        ("gcp:compute/firewall:Firewall", "free"),
        ("gcp:storage/bucket:Bucket", "by_usage"),
        ("random:index/randomId:RandomId", "free"),
        ("kubernetes:apps/v1:Deployment", "free"),
    ],
)
def test_usage_is_listed_and_costs_no_verdict(kind: str, standing: str, tmp_path: Path) -> None:
    code, found = preview(plan(tmp_path, [row(kind, "a")]), "--max-monthly", "0")
    assert (code, found["resources"][0]["standing"], found["resources"][0]["monthly_usd"]) == (
        0,
        standing,
        None,
    )


def test_limits_compare_with_the_state_before(tmp_path: Path) -> None:
    disk, broker = "aws:ebs/volume:Volume", row("aws:mq/broker:Broker", "b")
    old, new = (row(disk, "a", type="gp3", size=size) for size in (100, 200))
    path = plan(tmp_path, [new, broker], [old, broker, row(disk, "gone", type="gp3", size=10)])
    code, found = preview(path, "--max-increase", "5")
    assert (code, found["increase_usd"]) == (3, pytest.approx(90 * service("ebs_gp3")))
    # The broker was there before: it makes the sum unknown, not the increase.
    assert preview(path, "--max-increase", "8")[0] == 0
    assert preview(path, "--max-increase", "8", "--max-monthly", "100")[0] == 4
    assert preview(path, "--max-monthly", "15")[0] == 3


def test_the_verdict_of_the_policies_is_shown(tmp_path: Path) -> None:
    code, found = preview(
        plan(tmp_path, [row("aws:ebs/volume:Volume", "a", type="gp3", size=1, encrypted=False)])
    )
    assert code == 0 and found["policies"]["fail"] > 0
    text = run("preview", "--project", str(tmp_path / "plan.json"))[1]
    assert "total of known" in text and "policies: " in text


def test_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        run("preview", "--project", str(tmp_path), "--rehearse")
    assert refused.value.codes == (("option-conflict", "--rehearse"),)
    with pytest.raises(UserError) as refused:
        run("preview", "-s", "dev-aws", "--max-monthly", "3")
    assert refused.value.codes == (("option-missing", "--max-monthly"),)
    with pytest.raises(UserError) as refused:
        run("audit", "--preview", str(tmp_path), "--evidence", str(tmp_path / "e"))
    assert refused.value.codes == (("evidence-needs-kept-source", "--evidence"),)
    with pytest.raises(UserError) as refused:
        run("audit", "--preview", str(tmp_path))
    assert refused.value.codes == (("no-pulumi-project", "DIR"),)
    config = tmp_path / "dev.yaml"
    config.write_text("settings: {production: false}")
    with pytest.raises(UserError) as refused:
        run("audit", "--preview", str(tmp_path), "-c", str(config), "--config", "a:b=1")
    assert refused.value.codes == (("no-pulumi-project", "DIR"),)
    with pytest.raises(UserError) as refused:
        run("audit", "--preview", str(tmp_path), "-c", str(config), "-c", str(config))
    assert refused.value.codes == (("option-conflict", "--config"),)
    with pytest.raises(UserError) as refused:
        run("audit", "--preview", str(tmp_path / "plan.json"), "--config", "a:b=1")
    assert refused.value.codes == (("option-missing", "--config"),)


@pytest.mark.parametrize("option", [("--config", "aws:region=us-west-2"), ("--stack", "prod")], ids=" ".join)
def test_settings_of_a_project_are_refused_beside_a_file(tmp_path: Path, option: tuple[str, str]) -> None:
    with pytest.raises(UserError) as caught:
        run("preview", "--project", str(plan(tmp_path, [])), *option)
    assert caught.value.codes == (("option-conflict", option[0]),)
