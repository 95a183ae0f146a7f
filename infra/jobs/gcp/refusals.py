"""What Vertex AI and Cloud Storage refuse, in words that say what to do (pure).

Codes are those of google.rpc.Code; texts as in GoogleCloudPlatform/stable-diffusion-on-gcp issue 12 (quota)
and googleapis/python-aiplatform issue 1073 (accounts). A code that is not here is shown as it came.
"""

import re

from infra.clouds.gcp.api import DISABLED
from infra.errors import Problem
from smoke_training.launchers.runplan import RunPlan

# The service is not well; the request may be made again (google.api, AIP-194).
UNWELL = {"UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED", "ABORTED", "UNKNOWN"}
DENIED = "PERMISSION_DENIED"
_RIGHTS = "Ask whoever keeps the stack for this right; docs/how-to/jobs.md has all of them."


def of_create(plan: RunPlan, region: str, code: str, message: str) -> Problem:
    """Why the service made no job of a plan."""
    if code == "RESOURCE_EXHAUSTED" and "quota metrics" in message:
        return _quota(plan, region, message)
    if code == "RESOURCE_EXHAUSTED":
        return Problem(
            "run",
            None,
            f"the service is asked too often: {message}",
            "Try again in a minute.",
            code="service-throttled",
        )
    if "act as service_account" in message:
        rule = f"may not run a job as its account: {message}"
        return Problem(
            "login",
            None,
            rule,
            f"{_RIGHTS} After a change, run trainstack up.",
            code="service-account-denied",
        )
    if code in (DENIED, DISABLED):
        return of_other("start a job", code, message)
    if "machine" in message.lower() and code in ("INVALID_ARGUMENT", "NOT_FOUND"):
        fix = "Change the machine in the stack file, and run trainstack up."
        return Problem(
            "--on",
            plan.instance_type,
            f"the service refuses the machine: {_short(message)}",
            fix,
            code="machine-refused",
        )
    return Problem(
        "run",
        None,
        f"the service refuses it: {code}: {_short(message)}",
        "See docs/how-to/jobs.md.",
        code="start-refused",
    )


def of_other(what: str, code: str, message: str) -> Problem:
    """Why the service refused another request: `what` it was about."""
    if code == DISABLED:
        return Problem(
            "project", None, f"cannot {what}: {_short(message)}", "Run trainstack up.", code="api-disabled"
        )
    if code == DENIED:
        return Problem("login", None, f"may not {what}: {_short(message)}", _RIGHTS, code="request-denied")
    return Problem(
        "service",
        None,
        f"cannot {what}: {code}: {_short(message)}",
        "See docs/how-to/jobs.md.",
        code="request-refused",
    )


def _quota(plan: RunPlan, region: str, message: str) -> Problem:
    spot = plan.vertex is not None and plan.vertex.spot
    metrics = re.findall(r"aiplatform\.googleapis\.com/\w+", message)
    named = ", ".join(metrics) or "of custom jobs"
    rule = f"the project's quota {named} in {region} is too small for {plan.nodes} x {plan.instance_type}"
    other = "without --spot" if spot else "with --spot"
    fix = (
        "Ask for more in the console (IAM & Admin, Quotas: filter by the name, choose the region), which "
        f"takes hours to days. Another machine, or this one {other}, has a quota of its own."
    )
    return Problem("quota", None, rule, fix, code="quota-exceeded")


def _short(message: str) -> str:
    return message if len(message) < 600 else f"{message[:600]} ..."
