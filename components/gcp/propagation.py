"""Pauses after changes that IAM applies some time later.

A service agent is no member of a policy at once, and the provider gives up on it (terraform-provider-google
issue 21931; google/tpgiamresource/iam.go). A role has an effect within minutes (IAM documentation, "Access
change propagation"), and the provider does not repeat a build that had no access (issue 20571).
"""

import asyncio
import os
from typing import Final

import pulumi

VARIABLE: Final = "TRAINSTACK_IAM_DELAY_S"
"""Environment variable with another pause in seconds."""
USUAL_S: Final = 120


async def _pause(_: pulumi.ResourceHookArgs) -> None:
    await asyncio.sleep(float(os.environ.get(VARIABLE) or USUAL_S))


def settled(opts: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    """`opts` of a resource whose creation ends when IAM has applied it; its dependents wait for that."""
    hooks = pulumi.ResourceHookBinding(after_create=[_pause])
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(hooks=hooks))
