"""One command of one stack in a process of its own, so that a killed run does not affect the tests.

`python survivor.py up ENVIRONMENT ENGINE` prints the resource changes as JSON; ENVIRONMENT is the
rehearsal's, as JSON, and ENGINE the folder whose `bin` holds the CLI.
"""

import json
import sys
from pathlib import Path

import pulumi
import pulumi_aws as aws
from pulumi import automation

SUBNETS = 24


def program() -> None:
    """A chain: each subnet waits for the one before, so that a kill always hits the middle of something."""
    vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")
    previous: pulumi.Resource = vpc
    for index in range(SUBNETS):
        options = pulumi.ResourceOptions(depends_on=[previous])
        previous = aws.ec2.Subnet(f"s{index}", vpc_id=vpc.id, cidr_block=f"10.0.{index}.0/24", opts=options)


def main() -> None:
    operation, environment, engine = sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3])
    settings = automation.ProjectSettings(
        name="survivor",
        runtime="python",
        backend=automation.ProjectBackend(url=environment["PULUMI_BACKEND_URL"]),
    )
    options = automation.LocalWorkspaceOptions(
        env_vars=environment,
        project_settings=settings,
        pulumi_command=automation.PulumiCommand(root=str(engine)),
    )
    stack = automation.create_or_select_stack("dev", project_name="survivor", program=program, opts=options)
    stack.set_config("aws:region", automation.ConfigValue("us-east-1"))
    if operation == "cancel":
        stack.cancel()
        return
    result = stack.up() if operation == "up" else stack.destroy()
    sys.stdout.write(json.dumps(result.summary.resource_changes))


if __name__ == "__main__":
    main()
