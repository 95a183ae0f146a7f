"""A function of AWS Lambda that runs modules of this tree, the tested ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.logs import log_group
from components.base import Component, Options
from infra.naming import sanitize

_ROOT = Path(__file__).resolve().parents[3]
# Includes boto3. Source: AWS Lambda developer guide, "Lambda runtimes" (python3.13, Amazon Linux 2023, in
# support until 2029-06-30), read 2026-11-26.
RUNTIME = "python3.13"
# The longest time limit of a function, in seconds. Source: botocore 1.44.5 lambda/2015-03-31 (Timeout) and
# Lambda developer guide, "Lambda quotas".
LONGEST_S = 900
_NAME = 64
# Packages above the included one; the engine takes no empty text.
_ABOVE = "# Nothing of this package is taken along.\n"


class AwsFunctionArgs(TypedDict):
    """The code of the function, its permissions and its time limit."""

    package: str
    """The package whose modules are included, such as `agents.aws.budget_stop`."""
    imports: NotRequired[Sequence[str]]
    """Further packages that it imports. Default: none."""
    handler: str
    """Its module and function, such as `function.handler`."""
    environment: Mapping[str, pulumi.Input[str]]
    statements: pulumi.Input[Sequence[Mapping[str, object]]]
    """Permissions of its role, besides its log."""
    timeout_s: int
    log_retention_days: int
    kms_key_arn: pulumi.Input[str]
    """Key of its log and its environment; CloudWatch Logs may use it for `log_group_name(name)`."""
    memory_mib: NotRequired[int]


class AwsFunction(Component):
    """A function with a role and a log of its own. One call at a time: two would act twice."""

    name: pulumi.Output[str]
    arn: pulumi.Output[str]
    """The function; its callers come after its permissions."""

    def __init__(self, name: str, args: AwsFunctionArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        group = log_group(
            self,
            f"{name}-log",
            log_group_name=log_group_name(name),
            retention_days=args["log_retention_days"],
            key_arn=args["kms_key_arn"],
        )
        # Without variables, Lambda keeps no key for them, and each preview would add it again
        # (hashicorp/terraform-provider-aws issue 6366).
        variables = args["environment"]
        settings: Mapping[str, Any] = (
            {"environment": {"variables": variables}, "kms_key_arn": args["kms_key_arn"]} if variables else {}
        )
        role = iam.role(self, f"{name}-role", iam.trust("lambda.amazonaws.com"))
        policy = aws.iam.RolePolicy(
            f"{name}-policy",
            role=role.id,
            policy=pulumi.Output.all(group.arn, args["statements"], args["kms_key_arn"]).apply(
                lambda known: iam.document(*_own(known[0], known[2] if variables else None), *known[1])
            ),
            opts=self.child(),
        )
        function = aws.lambda_.Function(
            name,
            name=function_name(name),
            runtime=RUNTIME,
            handler=f"{args['package']}.{args['handler']}",
            code=packed(args["package"], *args.get("imports", ())),
            role=role.arn,
            timeout=args["timeout_s"],
            memory_size=args.get("memory_mib", 256),
            architectures=["arm64"],
            **settings,
            logging_config={"log_format": "Text", "log_group": group.name},
            opts=self.child(pulumi.ResourceOptions(depends_on=[policy])),
        )
        self.name, self.arn = function.name, function.arn
        self.register_declared()


def function_name(name: str) -> str:
    """The function's name in its account: known before it exists, because its key must name its log."""
    return sanitize(name, max_length=_NAME)


def log_group_name(name: str) -> str:
    """The log group of a function."""
    return f"/aws/lambda/{function_name(name)}"


def packed(*packages: str) -> pulumi.AssetArchive:
    """The modules of packages at their own paths, below empty packages."""
    files: dict[str, pulumi.Asset] = {}
    for package in packages:
        folder = _ROOT.joinpath(*package.split("."))
        for above in folder.relative_to(_ROOT).parents:
            if above != Path():
                files.setdefault((above / "__init__.py").as_posix(), pulumi.StringAsset(_ABOVE))
        for path in sorted(folder.glob("*.py")):
            files[path.relative_to(_ROOT).as_posix()] = pulumi.StringAsset(path.read_text(encoding="utf-8"))
    return pulumi.AssetArchive({**files})


def _own(group_arn: str, key_arn: str | None) -> list[Mapping[str, object]]:
    """A function writes its log and reads its variables."""
    writes = iam.allow(["logs:CreateLogStream", "logs:PutLogEvents"], [f"{group_arn}:*"])
    return [writes, *([iam.allow(["kms:Decrypt"], [key_arn])] if key_arn else [])]
