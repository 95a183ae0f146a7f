"""What exists already is taken over: `pulumi import`, the option `import_`, `Resource.get`."""

from collections.abc import Callable

import pulumi
import pulumi_aws as aws
import pytest
from pulumi import ResourceOptions, automation
from pulumi.automation import CommandError
from pulumi.automation._stack import ImportResource

from rehearsal.client import Rehearsal
from tests.rehearsal.runs.updates import counts

Select = Callable[[Callable[[], None]], automation.Stack]


def program(**imports: str) -> Callable[[], None]:
    """A network and a bucket; `imports` are the ids of those that exist already."""

    def run() -> None:
        def options(name: str) -> ResourceOptions:
            return ResourceOptions(import_=imports.get(name))

        vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", tags={"team": "a"}, opts=options("vpc"))
        subnet = aws.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block="10.0.0.0/24", opts=options("subnet"))
        bucket = aws.s3.Bucket("bucket", bucket="adopted-by-somebody", opts=options("bucket"))
        for name, made in {"vpc": vpc, "subnet": subnet, "bucket": bucket}.items():
            pulumi.export(name, made.id)

    return run


def forgotten(stack: automation.Stack) -> dict[str, str]:
    """Create everything and let the engine forget it; name -> id of what stays in the cloud."""
    outputs = stack.up().outputs
    state = stack.export_stack()
    known = dict(state.deployment or {})
    known["resources"] = [one for one in known["resources"] if not one["type"].startswith("aws:")]
    stack.import_stack(automation.Deployment(version=state.version, deployment=known))
    return {name: str(outputs[name].value) for name in ("vpc", "subnet", "bucket")}


def test_pulumi_import_takes_over_what_exists(rehearsal: Rehearsal, stack: Select) -> None:
    made = stack(program())
    ids = forgotten(made)
    types = {"vpc": "aws:ec2/vpc:Vpc", "subnet": "aws:ec2/subnet:Subnet", "bucket": "aws:s3/bucket:Bucket"}
    wanted = [ImportResource(id=ids[name], type=types[name], name=name) for name in ids]
    made.import_resources(resources=wanted, protect=False, generate_code=False)
    again = made.up()
    assert counts(again.summary.resource_changes) == {"same": 4}
    assert {name: again.outputs[name].value for name in ids} == ids
    made.destroy()
    assert rehearsal.status()["resources"]["aws"] == 0


def test_the_option_import_takes_over_what_exists_and_refuses_what_differs(
    rehearsal: Rehearsal, stack: Select
) -> None:
    ids = forgotten(stack(program()))
    imported = stack(program(**ids)).up()
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
