"""The real engine with our providers: the view of a user of a rehearsal."""

import json
from collections.abc import Callable
from typing import Any

import psutil
import pulumi
import pulumi_aws as aws
import pulumi_gcp as gcp
import pytest
from pulumi import automation

from rehearsal.client import Rehearsal
from tests.rehearsal.runs.updates import changes, refused

Select = Callable[[Callable[[], None]], automation.Stack]


def network(cidr: str, *, dns: bool = False) -> None:
    vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", enable_dns_hostnames=dns)
    subnet = aws.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block=cidr)
    pulumi.export("vpc", vpc.id)
    pulumi.export("subnet", subnet.id)


def plain() -> None:
    network("10.0.0.0/24")


def moved() -> None:
    network("10.0.1.0/24", dns=True)


def daemons(rehearsal: Rehearsal) -> list[psutil.Process]:
    """Processes of this home."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(rehearsal.home) in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_up_unchanged_up_and_destroy_leave_nothing(rehearsal: Rehearsal, stack: Select) -> None:
    stack_ = stack(plain)
    output: list[str] = []
    created = stack_.up(on_output=output.append)
    assert changes(created) == {"create": 3}
    assert created.outputs["vpc"].value.startswith("vpc-")
    assert not [line for line in output if "warning" in line.lower()]
    assert rehearsal.status()["resources"]["aws"] == 6  # the VPC brings four parts
    assert changes(stack_.up()) == {"same": 3}
    assert changes(stack_.destroy()) == {"delete": 3}
    assert rehearsal.status()["resources"] == {"aws": 0, "gcp": 0, "kubernetes": 0}
    rehearsal.wait_until_idle()
    assert daemons(rehearsal) == []
    # Automatic logs of the engine would be a folder: a third of its processor time.
    assert (rehearsal.home / "pulumi" / "logs").is_file()


def test_a_preview_equals_the_update(stack: Select) -> None:
    stack(plain).up()
    preview = stack(moved).preview()
    counts = {str(kind): count for kind, count in preview.change_summary.items()}
    assert counts == {"same": 1, "update": 1, "replace": 1}
    result = stack(moved).up()
    assert changes(result) == {"same": 1, "update": 1, "replace": 1}


def test_bad_properties_are_reported_together_before_anything_is_created(
    rehearsal: Rehearsal, stack: Select
) -> None:
    def program() -> None:
        vpc: Any = {"subnet_ids": ["subnet-1"], "endpoint_public_acces": True}
        network: Any = {"elasticLoadBalancing": {"enabeld": True}}
        role = "arn:aws:iam::123456789012:role/x"
        aws.eks.Cluster("cluster", role_arn=role, vpc_config=vpc, kubernetes_network_config=network)

    output = refused(stack(program))
    assert "vpcConfig.endpoint_public_acces" in output and "mean endpointPublicAccess" in output
    assert "kubernetesNetworkConfig.elasticLoadBalancing.enabeld" in output and "mean enabled" in output
    assert rehearsal.status()["resources"]["aws"] == 0


def test_a_dangling_reference_is_refused_with_its_path(stack: Select) -> None:
    def program() -> None:
        aws.ec2.Subnet("subnet", vpc_id="vpc-0123456789abcdef0", cidr_block="10.0.0.0/24")

    output = refused(stack(program))
    assert "InvalidVpcID.NotFound" in output and "vpcId" in output
    assert "Traceback" not in output


def test_deleting_what_is_used_outside_the_stack_is_refused(rehearsal: Rehearsal, stack: Select) -> None:
    """A second stack's subnet in the first one's VPC blocks the deletion as it does in AWS."""
    first = stack(lambda: pulumi.export("vpc", aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16").id))
    vpc = first.up().outputs["vpc"].value

    def foreign() -> None:
        aws.ec2.Subnet("foreign", vpc_id=vpc, cidr_block="10.0.0.0/24")

    environment = rehearsal.environment()
    settings = automation.ProjectSettings(
        name="other",
        runtime="python",
        backend=automation.ProjectBackend(url=environment["PULUMI_BACKEND_URL"]),
    )
    second = automation.create_or_select_stack(
        "dev",
        project_name="other",
        program=foreign,
        opts=automation.LocalWorkspaceOptions(
            env_vars=environment, project_settings=settings, pulumi_command=first.workspace.pulumi_command
        ),
    )
    second.set_config("aws:region", automation.ConfigValue("us-east-1"))
    second.up()
    with pytest.raises(automation.CommandError, match="DependencyViolation"):
        first.destroy()
    second.destroy()
    first.destroy()
    assert rehearsal.status()["resources"]["aws"] == 0


def test_regions_and_accounts_are_kept_apart_by_provider(stack: Select) -> None:
    def program() -> None:
        west = aws.Provider("west", region="eu-west-1")
        role = "arn:aws:iam::210987654321:role/deploy"
        theirs = aws.Provider("theirs", region="us-east-1", assume_roles=[{"role_arn": role}])
        for name, provider in (("home", None), ("west", west), ("theirs", theirs)):
            options = pulumi.ResourceOptions(provider=provider)
            pulumi.export(name, aws.ec2.Vpc(name, cidr_block="10.0.0.0/16", opts=options).arn)
        pulumi.export("argument", aws.ec2.Vpc("argument", cidr_block="10.0.0.0/16", region="us-west-2").arn)

    outputs = {name: output.value for name, output in stack(program).up().outputs.items()}
    assert ":us-east-1:123456789012:" in outputs["home"]
    assert ":eu-west-1:123456789012:" in outputs["west"]
    assert ":us-east-1:210987654321:" in outputs["theirs"]
    assert ":us-west-2:123456789012:" in outputs["argument"]


def test_a_missing_region_is_reported(stack: Select) -> None:
    stack_ = stack(plain)
    stack_.remove_config("aws:region")
    assert "Missing region configuration" in refused(stack_)


def test_secrets_stay_secret(stack: Select) -> None:
    def program() -> None:
        secret = aws.secretsmanager.Secret("s")
        value = aws.secretsmanager.SecretVersion(
            "v", secret_id=secret.id, secret_string=pulumi.Output.secret("hunter2")
        )
        pulumi.export("value", value.secret_string)

    result = stack(program).up()
    assert result.outputs["value"].secret and result.outputs["value"].value == "hunter2"
    assert "hunter2" not in result.stdout


def test_an_unknown_function_is_reported_with_a_fix(stack: Select) -> None:
    def program() -> None:
        aws.ec2.get_spot_price(instance_type="p5.48xlarge")

    output = refused(stack(program))
    assert "getSpotPrice" in output and "functions.py" in output


def test_google_resources_are_checked_and_kept(rehearsal: Rehearsal, stack: Select) -> None:
    def program() -> None:
        provider = gcp.Provider("gcp", project="research", region="us-central1")
        network = gcp.compute.Network(
            "net", auto_create_subnetworks=False, opts=pulumi.ResourceOptions(provider=provider)
        )
        pulumi.export("link", network.self_link)

    stack_ = stack(program)
    assert "projects/research" in stack_.up().outputs["link"].value
    assert changes(stack_.up()) == {"same": 3}
    stack_.destroy()
    assert rehearsal.status()["resources"]["gcp"] == 0


def test_a_replaced_program_keeps_running_after_the_daemon_went_idle(
    rehearsal: Rehearsal, stack: Select
) -> None:
    stack_ = stack(plain)
    stack_.up()
    rehearsal.wait_until_idle()
    assert changes(stack_.up()) == {"same": 3}
    assert rehearsal.status()["resources"]["aws"] == 6


def test_a_preview_knows_that_it_does_not_know_what_the_service_adds_to_a_block(stack: Select) -> None:
    def program() -> None:
        vpc = aws.ec2.Vpc("net", cidr_block="10.0.0.0/16")
        service = {"Service": "eks.amazonaws.com"}
        statement = {"Effect": "Allow", "Principal": service, "Action": "sts:AssumeRole"}
        trust = {"Version": "2012-10-17", "Statement": [statement]}
        subnets = [
            aws.ec2.Subnet(
                f"s{index}", vpc_id=vpc.id, cidr_block=f"10.0.{index}.0/24", availability_zone=zone
            )
            for index, zone in enumerate(("us-east-1a", "us-east-1b"))
        ]
        role = aws.iam.Role("eks", assume_role_policy=json.dumps(trust))
        cluster = aws.eks.Cluster(
            "c", role_arn=role.arn, vpc_config={"subnet_ids": [subnet.id for subnet in subnets]}
        )
        # None instead of "not known yet" would be refused: a rule needs a peer.
        aws.vpc.SecurityGroupIngressRule(
            "r",
            security_group_id=cluster.vpc_config.cluster_security_group_id,
            referenced_security_group_id=cluster.vpc_config.cluster_security_group_id,
            ip_protocol="-1",
        )

    assert stack(program).preview().change_summary
    assert stack(program).up().summary.result == "succeeded"
