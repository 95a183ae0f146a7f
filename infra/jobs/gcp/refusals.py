"""Errors of Vertex AI and Cloud Storage as problems with a fix (pure).

Codes are those of google.rpc.Code; texts as in GoogleCloudPlatform/stable-diffusion-on-gcp issue 12 (quota)
and googleapis/python-aiplatform issue 1073 (accounts). Other codes are shown unchanged.
"""

import re

from infra.clouds.gcp.api import DISABLED
from infra.errors import Problem
from infra.launchers.runplan import RunPlan

# The service is unavailable; the request may be retried (google.api, AIP-194).
UNAVAILABLE = {"UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED", "ABORTED", "UNKNOWN"}
DENIED = "PERMISSION_DENIED"
_RIGHTS = "Request this permission from the administrator of the stack; docs/how-to/jobs.md lists all."


def of_create(plan: RunPlan, region: str, code: str, message: str) -> Problem:
    """The reason why the service created no job."""
    if code == "RESOURCE_EXHAUSTED" and "quota metrics" in message:
        return _quota(plan, region, message)
    if code == "RESOURCE_EXHAUSTED":
        rule, fix = f"the service throttles requests: {message}", "Try again in a minute."
        return Problem("run", None, rule, fix, code="service-throttled")
    if "act as service_account" in message:
        rule = f"may not run a job as its service account: {message}"
        fix = f"{_RIGHTS} After a change, run trainstack up."
        return Problem("login", None, rule, fix, code="service-account-denied")
    if code in (DENIED, DISABLED):
        return of_other("start a job", code, message)
    if "machine" in message.lower() and code in ("INVALID_ARGUMENT", "NOT_FOUND"):
        fix = "Change the machine in the stack file, and run trainstack up."
        rule = f"the service refuses the machine: {_short(message)}"
        return Problem("--on", plan.instance_type, rule, fix, code="machine-refused")
    rule, fix = f"the service refuses it: {code}: {_short(message)}", "See docs/how-to/jobs.md."
    return Problem("run", None, rule, fix, code="start-refused")


def of_other(what: str, code: str, message: str) -> Problem:
    """The reason why the service refused another request, named by `what`."""
    if code == DISABLED:
        rule, fix = f"cannot {what}: {_short(message)}", "Run trainstack up."
        return Problem("project", None, rule, fix, code="api-disabled")
    if code == DENIED:
        return Problem("login", None, f"may not {what}: {_short(message)}", _RIGHTS, code="request-denied")
    rule, fix = f"cannot {what}: {code}: {_short(message)}", "See docs/how-to/jobs.md."
    return Problem("service", None, rule, fix, code="request-refused")


def _quota(plan: RunPlan, region: str, message: str) -> Problem:
    spot = plan.vertex is not None and plan.vertex.spot
    metrics = re.findall(r"aiplatform\.googleapis\.com/\w+", message)
    named = ", ".join(metrics) or "of custom jobs"
    rule = f"the project's quota {named} in {region} is too small for {plan.nodes} x {plan.instance_type}"
    other = "without --spot" if spot else "with --spot"
    fix = (
        "Request more in the console (IAM & Admin, Quotas: filter by the name, choose the region), which "
        f"takes hours to days. Another machine, or this one {other}, has a quota of its own."
    )
    return Problem("quota", None, rule, fix, code="quota-exceeded")


def _short(message: str) -> str:
    return message if len(message) < 600 else f"{message[:600]} ..."
