"""Adoption of existing resources: `pulumi import`, the option `import_`, `Resource.get`."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest
from pulumi import ResourceOptions, automation
from pulumi.automation import CommandError

from policies.sources.live.join import Join, joined
from policies.sources.live.queries import AnswerItem, Answers
from policies.sources.live.records import account
from policies.sources.live.snapshot import Snapshot
from policies.sources.live.tables import tables
from rehearsal.client import Rehearsal
from tests.rehearsal.runs.updates import counts
from trainstack.handover.imports import imports

Select = Callable[[Callable[[], None]], automation.Stack]


def program(names: Mapping[str, str] | None = None, **imports: str) -> Callable[[], None]:
    """A network and a bucket, by other names; `imports` are the ids of existing ones."""
    called = {"vpc": "vpc", "subnet": "subnet", "bucket": "bucket", **(names or {})}

    def run() -> None:
        def options(name: str) -> ResourceOptions:
            return ResourceOptions(import_=imports.get(name))

        vpc = aws.ec2.Vpc(called["vpc"], cidr_block="10.0.0.0/16", tags={"team": "a"}, opts=options("vpc"))
        subnet = aws.ec2.Subnet(
            called["subnet"], vpc_id=vpc.id, cidr_block="10.0.0.0/24", opts=options("subnet")
        )
        bucket = aws.s3.Bucket(called["bucket"], bucket="adopted-bucket", opts=options("bucket"))
        for name, made in {"vpc": vpc, "subnet": subnet, "bucket": bucket}.items():
            pulumi.export(name, made.id)

    return run


def forgotten(stack: automation.Stack) -> dict[str, str]:
    """Create everything and remove it from the state of the engine; name -> id in the cloud."""
    outputs = stack.up().outputs
    state = stack.export_stack()
    known = dict(state.deployment or {})
    known["resources"] = [one for one in known["resources"] if not one["type"].startswith("aws:")]
    stack.import_stack(automation.Deployment(version=state.version, deployment=known))
    return {name: str(outputs[name].value) for name in ("vpc", "subnet", "bucket")}


def unmanaged(ids: Mapping[str, str]) -> Join:
    """Findings of an audit for an account with these resources, tagged as of a stack, and an empty state."""
    tags = [{"Key": "trainstack:stack", "Value": "dev"}]
    rows: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "ec2.DescribeVpcs": ({"VpcId": ids["vpc"], "Tags": tags}, {}),
        "ec2.DescribeSubnets": ({"SubnetId": ids["subnet"], "Tags": tags}, {}),
        "s3.ListBuckets": ({"Name": ids["bucket"]}, {}),
        "s3.GetBucketTagging": (tags[0], {"Bucket": ids["bucket"]}),
    }
    answers = {name: Answers((AnswerItem(answer, asked),)) for name, (answer, asked) in rows.items()}
    answers = {**dict.fromkeys(tables("aws").queries, Answers()), **answers}
    return joined([], account(Snapshot("aws", "123456789012", "us-east-1", "2026-11-23T00:00:00Z", answers)))


def test_pulumi_import_adopts_what_an_audit_found_unmanaged(
    rehearsal: Rehearsal, stack: Select, tmp_path: Path
) -> None:
    made = stack(program())
    ids = forgotten(made)
    file = tmp_path / "import.json"
    file.write_text(unmanaged(ids).import_file())
    made._run_pulumi_cmd_sync(
        ["import", "--file", str(file), "--yes", "--protect=false", "--generate-code=false"]
    )
    named = {one["id"]: one["name"] for one in json.loads(file.read_text())["resources"]}
    assert named.keys() == {*ids.values()}
    again = stack(program({name: named[found] for name, found in ids.items()})).up()
    assert counts(again.summary.resource_changes) == {"same": 4}
    assert {name: again.outputs[name].value for name in ids} == ids
    made.destroy()
    assert rehearsal.status()["resources"]["aws"] == 0


def routed() -> None:
    """Resources that the provider imports by another id than that in a state."""
    vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")
    subnet = aws.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block="10.0.0.0/24")
    table = aws.ec2.RouteTable("table", vpc_id=vpc.id)
    gateway = aws.ec2.InternetGateway("gateway", vpc_id=vpc.id)
    aws.ec2.Route("route", route_table_id=table.id, destination_cidr_block="0.0.0.0/0", gateway_id=gateway.id)
    aws.ec2.RouteTableAssociation("association", subnet_id=subnet.id, route_table_id=table.id)
    pulumi.export("table", table.id)


def test_the_import_file_of_a_handover_adopts_every_resource(
    rehearsal: Rehearsal, stack: Select, tmp_path: Path
) -> None:
    made = stack(routed)
    table = made.up().outputs["table"].value
    state = made.export_stack()
    known = dict(state.deployment or {})
    file = tmp_path / "import.json"
    file.write_text(imports(known["resources"], made.name).pulumi())
    known["resources"] = [one for one in known["resources"] if not one["type"].startswith("aws:")]
    made.import_stack(automation.Deployment(version=state.version, deployment=known))
    options = ["--yes", "--protect=false", "--generate-code=false"]
    made._run_pulumi_cmd_sync(["import", "--file", str(file), *options])
    assert counts(stack(routed).up().summary.resource_changes) == {"same": 7}
    with pytest.raises(CommandError, match="expected ROUTETABLEID_DESTINATION"):
        made._run_pulumi_cmd_sync(["import", "aws:ec2/route:Route", "other", f"r-{table}1", *options])
    made.destroy()
    assert rehearsal.status()["resources"]["aws"] == 0


def test_the_option_import_adopts_existing_resources_and_refuses_differences(
    rehearsal: Rehearsal, stack: Select
) -> None:
    ids = forgotten(stack(program()))
    imported = stack(program(None, **ids)).up()
    assert counts(imported.summary.resource_changes).get("import") == 3
    assert counts(stack(program()).up().summary.resource_changes) == {"same": 4}

    def missing() -> None:
        aws.ec2.Vpc("other", opts=ResourceOptions(import_="vpc-0123456789abcdef0"))

    with pytest.raises(CommandError, match="does not exist"):
        stack(missing).up()


def test_get_reads_what_exists_and_fails_for_what_does_not(rehearsal: Rehearsal, stack: Select) -> None:
    ids = {name: str(value.value) for name, value in stack(program()).up().outputs.items()}

    def reading() -> None:
        program()()
        pulumi.export("cidr", aws.ec2.Subnet.get("seen", ids["subnet"]).cidr_block)

    assert stack(reading).up().outputs["cidr"].value == "10.0.0.0/24"

    def missing() -> None:
        program()()
        aws.ec2.Vpc.get("unseen", "vpc-0123456789abcdef0")

    with pytest.raises(CommandError, match="vpc-0123456789abcdef0"):
        stack(missing).up()
