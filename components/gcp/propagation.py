"""Pauses before resources that need what IAM applies some time later.

A service agent is no member of a policy at once, and the provider gives up on it (terraform-provider-google
issue 21931; google/tpgiamresource/iam.go). A role has an effect within minutes (IAM documentation, "Access
change propagation"), and the provider does not repeat a build that had no access (issue 20571).
"""

import math
import os
import time
from asyncio import sleep
from typing import Any, Final

import pulumi

from infra.catalog.gcp.deploying import IAM_PAUSE_S
from infra.errors import Problem, UserError

VARIABLE: Final = "TRAINSTACK_IAM_DELAY_S"
"""Environment variable with another pause in seconds."""
_MOST_S: Final = 3600


def pause_s() -> float:
    """Seconds of each pause. Raises UserError for a variable that is no number of seconds up to an hour."""
    given = os.environ.get(VARIABLE) or str(IAM_PAUSE_S)
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= _MOST_S:
        rule = f"must be a number of seconds from 0 to {_MOST_S}"
        fix = f"Unset it for the usual {IAM_PAUSE_S} s."
        raise UserError([Problem(VARIABLE, given, rule, fix, code="iam-delay-invalid")])
    return seconds


def settled(opts: pulumi.ResourceOptions, *known: pulumi.Input[Any]) -> pulumi.ResourceOptions:
    """`opts` of a resource that is created when IAM has applied what this program knows as `known`.

    The pause is the dependent's own: an `up` after one that was stopped has it again (ADR 67).
    """
    delay = pause_s()
    since = pulumi.Output.all(*known).apply(lambda _: time.monotonic())

    async def pause(_: pulumi.ResourceHookArgs) -> None:
        start = await since.future()
        await sleep(delay if start is None else start + delay - time.monotonic())

    hooks = pulumi.ResourceHookBinding(before_create=[pause])
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(hooks=hooks))
