"""Pauses before resources that need what IAM applies some time later.

A service agent is no member of a policy at once, and the provider gives up on it (terraform-provider-google
issue 21931; google/tpgiamresource/iam.go). A role has an effect within minutes (IAM documentation, "Access
change propagation"), and the provider does not repeat a build that had no access (issue 20571).
"""

import asyncio
import os
import time
from typing import Any, Final

import pulumi

VARIABLE: Final = "TRAINSTACK_IAM_DELAY_S"
"""Environment variable with another pause in seconds."""
USUAL_S: Final = 120


def settled(opts: pulumi.ResourceOptions, *known: pulumi.Input[Any]) -> pulumi.ResourceOptions:
    """`opts` of a resource that is created when IAM has applied what this program knows as `known`.

    The pause is the dependent's own: an `up` after one that was stopped has it again (ADR 67).
    """
    since = pulumi.Output.all(*known).apply(lambda _: time.monotonic())

    async def pause(_: pulumi.ResourceHookArgs) -> None:
        delay = float(os.environ.get(VARIABLE) or USUAL_S)
        start = await since.future()
        await asyncio.sleep(delay if start is None else start + delay - time.monotonic())

    hooks = pulumi.ResourceHookBinding(before_create=[pause])
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(hooks=hooks))
