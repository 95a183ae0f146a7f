"""Plain AWS resources for benchmarks, in Terraform's terms, and the calls of the AWS API that create each.

pulumi_aws has the same argument and attribute names, because it is generated from Terraform's provider. A
reference is a whole argument, `${type.name.attribute}`, to a resource earlier in the list.
"""

import importlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

# Neither has types.
boto3: Any = importlib.import_module("boto3")
botocore_config: Any = importlib.import_module("botocore.config")

REGION = "us-east-1"
_ASSUME = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
_LIST = {"Effect": "Allow", "Action": "s3:ListAllMyBuckets", "Resource": "*"}
_REFERENCE = re.compile(r"\$\{\w+\.(\w+)\.(\w+)\}")

Clients = Mapping[str, Any]
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Resource:
    """One resource: Terraform's type, a name of its own, and Terraform's arguments."""

    kind: str
    name: str
    arguments: dict[str, Any]

    def needs(self) -> list[str]:
        """Names of the resources it refers to."""
        found = (_REFERENCE.fullmatch(str(value)) for value in self.arguments.values())
        return [match[1] for match in found if match]


@dataclass(frozen=True)
class Kind:
    """A type: its class in pulumi_aws; a call that gives attributes; one that takes arguments and those."""

    pulumi: str
    create: Callable[[Clients, Values], dict[str, Any]]
    delete: Callable[[Clients, Values], object]


def plain_resources() -> Iterator[Resource]:
    """A VPC and then tens of resources: a subnet, a group and its rule, a bucket and its versioning, ..."""
    yield Resource("aws_vpc", "vpc", {"cidr_block": "10.0.0.0/16"})
    for index in range(256):  # as many subnets of this size fit
        named = f"trainstack-benchmark-{index}"
        in_vpc = {"vpc_id": "${aws_vpc.vpc.id}"}
        yield Resource("aws_subnet", f"subnet{index}", {**in_vpc, "cidr_block": f"10.0.{index}.0/24"})
        group = {**in_vpc, "name": named, "description": "Benchmark"}
        yield Resource("aws_security_group", f"group{index}", group)
        rule = {
            "security_group_id": f"${{aws_security_group.group{index}.id}}",
            "cidr_ipv4": "10.0.0.0/16",
            "ip_protocol": "tcp",
            "from_port": 443,
            "to_port": 443,
        }
        yield Resource("aws_vpc_security_group_ingress_rule", f"rule{index}", rule)
        yield Resource("aws_s3_bucket", f"bucket{index}", {"bucket": named})
        versioning = {
            "bucket": f"${{aws_s3_bucket.bucket{index}.id}}",
            "versioning_configuration": {"status": "Enabled"},
        }
        yield Resource("aws_s3_bucket_versioning", f"versioning{index}", versioning)
        role = {"name": named, "assume_role_policy": _document(_ASSUME)}
        yield Resource("aws_iam_role", f"role{index}", role)
        yield Resource("aws_iam_policy", f"policy{index}", {"name": named, "policy": _document(_LIST)})
        attachment = {
            "role": f"${{aws_iam_role.role{index}.name}}",
            "policy_arn": f"${{aws_iam_policy.policy{index}.arn}}",
        }
        yield Resource("aws_iam_role_policy_attachment", f"attachment{index}", attachment)
        yield Resource("aws_cloudwatch_log_group", f"logs{index}", {"name": named, "retention_in_days": 7})
        yield Resource("aws_kms_key", f"key{index}", {"description": named, "deletion_window_in_days": 7})


def _document(statement: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _create_rule(clients: Clients, values: Values) -> dict[str, Any]:
    permission = {
        "IpProtocol": values["ip_protocol"],
        "FromPort": values["from_port"],
        "ToPort": values["to_port"],
        "IpRanges": [{"CidrIp": values["cidr_ipv4"]}],
    }
    result = clients["ec2"].authorize_security_group_ingress(
        GroupId=values["security_group_id"], IpPermissions=[permission]
    )
    return {"id": result["SecurityGroupRules"][0]["SecurityGroupRuleId"]}


def _create_bucket(clients: Clients, values: Values) -> dict[str, Any]:
    clients["s3"].create_bucket(Bucket=values["bucket"])
    return {"id": values["bucket"]}


def _version(clients: Clients, values: Values, status: str) -> dict[str, Any]:
    clients["s3"].put_bucket_versioning(Bucket=values["bucket"], VersioningConfiguration={"Status": status})
    return {"id": values["bucket"]}


def _create_role(clients: Clients, values: Values) -> dict[str, Any]:
    clients["iam"].create_role(RoleName=values["name"], AssumeRolePolicyDocument=values["assume_role_policy"])
    return {"id": values["name"]}


def _create_policy(clients: Clients, values: Values) -> dict[str, Any]:
    result = clients["iam"].create_policy(PolicyName=values["name"], PolicyDocument=values["policy"])
    return {"arn": result["Policy"]["Arn"]}


def _attach(clients: Clients, values: Values) -> dict[str, Any]:
    clients["iam"].attach_role_policy(RoleName=values["role"], PolicyArn=values["policy_arn"])
    return {}


def _create_logs(clients: Clients, values: Values) -> dict[str, Any]:
    clients["logs"].create_log_group(logGroupName=values["name"])
    clients["logs"].put_retention_policy(
        logGroupName=values["name"], retentionInDays=values["retention_in_days"]
    )
    return {"id": values["name"]}


KINDS = {
    "aws_vpc": Kind(
        "ec2.Vpc",
        lambda clients, of: {"id": clients["ec2"].create_vpc(CidrBlock=of["cidr_block"])["Vpc"]["VpcId"]},
        lambda clients, of: clients["ec2"].delete_vpc(VpcId=of["id"]),
    ),
    "aws_subnet": Kind(
        "ec2.Subnet",
        lambda clients, of: {
            "id": clients["ec2"].create_subnet(VpcId=of["vpc_id"], CidrBlock=of["cidr_block"])["Subnet"][
                "SubnetId"
            ]
        },
        lambda clients, of: clients["ec2"].delete_subnet(SubnetId=of["id"]),
    ),
    "aws_security_group": Kind(
        "ec2.SecurityGroup",
        lambda clients, of: {
            "id": clients["ec2"].create_security_group(
                VpcId=of["vpc_id"], GroupName=of["name"], Description=of["description"]
            )["GroupId"]
        },
        lambda clients, of: clients["ec2"].delete_security_group(GroupId=of["id"]),
    ),
    "aws_vpc_security_group_ingress_rule": Kind(
        "vpc.SecurityGroupIngressRule",
        _create_rule,
        lambda clients, of: clients["ec2"].revoke_security_group_ingress(
            GroupId=of["security_group_id"], SecurityGroupRuleIds=[of["id"]]
        ),
    ),
    "aws_s3_bucket": Kind(
        "s3.Bucket", _create_bucket, lambda clients, of: clients["s3"].delete_bucket(Bucket=of["bucket"])
    ),
    "aws_s3_bucket_versioning": Kind(
        "s3.BucketVersioning",
        lambda clients, of: _version(clients, of, "Enabled"),
        lambda clients, of: _version(clients, of, "Suspended"),
    ),
    "aws_iam_role": Kind(
        "iam.Role", _create_role, lambda clients, of: clients["iam"].delete_role(RoleName=of["name"])
    ),
    "aws_iam_policy": Kind(
        "iam.Policy", _create_policy, lambda clients, of: clients["iam"].delete_policy(PolicyArn=of["arn"])
    ),
    "aws_iam_role_policy_attachment": Kind(
        "iam.RolePolicyAttachment",
        _attach,
        lambda clients, of: clients["iam"].detach_role_policy(
            RoleName=of["role"], PolicyArn=of["policy_arn"]
        ),
    ),
    "aws_cloudwatch_log_group": Kind(
        "cloudwatch.LogGroup",
        _create_logs,
        lambda clients, of: clients["logs"].delete_log_group(logGroupName=of["name"]),
    ),
    "aws_kms_key": Kind(
        "kms.Key",
        lambda clients, of: {
            "id": clients["kms"].create_key(Description=of["description"])["KeyMetadata"]["KeyId"]
        },
        lambda clients, of: clients["kms"].schedule_key_deletion(
            KeyId=of["id"], PendingWindowInDays=of["deletion_window_in_days"]
        ),
    ),
}


class Calls:
    """The bare calls that make and delete resources at one address."""

    def __init__(self, address: str) -> None:
        config = botocore_config.Config(max_pool_connections=10, s3={"addressing_style": "path"})
        session = boto3.session.Session("benchmark", "benchmark", region_name=REGION)
        self._clients: dict[str, Any] = {
            name: session.client(name, endpoint_url=address, config=config)
            for name in ("ec2", "iam", "kms", "logs", "s3")
        }

    def touch(self) -> None:
        """One read of every service."""
        self._clients["ec2"].describe_vpcs()
        self._clients["iam"].list_policies(MaxItems=1)
        self._clients["kms"].list_keys()
        self._clients["logs"].describe_log_groups()
        self._clients["s3"].list_buckets()

    def make_and_delete(self, resources: list[Resource], at_once: int) -> tuple[float, float]:
        """Seconds of making all and of deleting all, dependencies respected, `at_once` of them at a time."""
        known: dict[str, dict[str, Any]] = {}
        by_name = {each.name: each for each in resources}

        def create(name: str) -> None:
            kind, values = KINDS[by_name[name].kind], {}
            for argument, value in by_name[name].arguments.items():
                reference = _REFERENCE.fullmatch(str(value))
                values[argument] = known[reference[1]][reference[2]] if reference else value
            known[name] = {**values, **kind.create(self._clients, values)}

        def delete(name: str) -> None:
            KINDS[by_name[name].kind].delete(self._clients, known[name])

        needs = {each.name: each.needs() for each in resources}
        needed = {name: [other for other in needs if name in needs[other]] for name in needs}
        return in_order(needs, create, at_once), in_order(needed, delete, at_once)


def in_order(after: Mapping[str, list[str]], do: Callable[[str], None], at_once: int) -> float:
    """Seconds of doing every name, each as soon as those it comes after are done and one may."""
    start = time.perf_counter()
    order = TopologicalSorter(after)
    order.prepare()
    with ThreadPoolExecutor(at_once) as pool:
        running: dict[Future[None], str] = {}
        while order.is_active():
            running.update({pool.submit(do, name): name for name in order.get_ready()})
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                future.result()
                order.done(running.pop(future))
    return time.perf_counter() - start
