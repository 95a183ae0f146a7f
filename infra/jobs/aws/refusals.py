"""Errors of SageMaker and S3 as problems with a fix (pure).

Codes and texts are from the API references. Other codes are shown unchanged.
"""

import difflib
import re
from collections.abc import Sequence

from infra.catalog.aws.jobs import quota_name
from infra.catalog.aws.quotas import key_of, request
from infra.clouds.aws.login import DENIED
from infra.errors import Problem
from infra.launchers.runplan import RunPlan

# The service is unavailable or throttles; the request may be retried ("Common Error Types").
UNAVAILABLE = {
    *(
        "InternalFailure",
        "InternalServerError",
        "InternalError",
        "ServiceUnavailable",
        "ServiceUnavailableException",
    ),
    *("SlowDown", "Throttling", "ThrottlingException", "TooManyRequestsException"),
}
_IN_USE = re.compile(
    r"service limit '([^']+)' is ([\d.]+) \w+, with current utilization of ([\d.]+) \w+ and a request "
    r"delta of ([\d.]+)"
)
_EACH = re.compile(
    r"request delta of ([\d.]+) \w+ for '([^']+)' is greater than the account-level service-limit of ([\d.]+)"
)
_RIGHTS = "Request this permission from the administrator of the stack; docs/how-to/jobs.md lists all."


def of_create(plan: RunPlan, region: str, code: str, message: str, types: Sequence[str]) -> Problem:
    """The reason why the service created no job; `types` are the machine types of the service."""
    machine = f"ml.{plan.instance_type}"
    if code == "ResourceLimitExceeded":
        return _quota(plan, region, message)
    if code == "ResourceInUse":
        rule = "another run of this person and folder has just got this name"
        return Problem("run", plan.name, rule, "Start it again.", code="run-name-taken")
    if "instancetype" in message.replace(" ", "").lower() and code == "ValidationException":
        near = [one for one in difflib.get_close_matches(machine, types, n=4) if one != machine]
        like = f" Near it are {', '.join(near)}." if near else ""
        fix = f"Change the machine in the stack file, and run trainstack up.{like}"
        rule = f"the service has no such machine type for training in {region}"
        return Problem("--on", machine, rule, fix, code="machine-not-at-service")
    if code in DENIED:
        return Problem("login", None, f"may not start a job: {message}", _RIGHTS, code="start-denied")
    if code == "ResourceNotFound":
        rule, fix = f"a resource is missing: {message}", "Run trainstack up."
        return Problem("run", None, rule, fix, code="resource-missing")
    rule, fix = f"the service refuses it: {code}: {_short(message)}", "See docs/how-to/jobs.md."
    return Problem("run", None, rule, fix, code="start-refused")


def of_other(what: str, code: str, message: str) -> Problem:
    """The reason why the service refused another request, named by `what`."""
    if code in DENIED or code in ("403", "Forbidden"):
        return Problem("login", None, f"may not {what}: {message}", _RIGHTS, code="request-denied")
    if code == "NoSuchBucket":
        rule, fix = f"cannot {what}: the bucket is gone", "Run trainstack up."
        return Problem("stack", None, rule, fix, code="bucket-missing")
    rule, fix = f"cannot {what}: {code}: {_short(message)}", "See docs/how-to/jobs.md."
    return Problem("service", None, rule, fix, code="request-refused")


def of_request(what: str, error: Exception) -> Problem:
    """The reason why the SDK did not send a request: a value that the service's model excludes."""
    rule, fix = f"cannot {what}: {_short(str(error))}", "Change the option that has this value."
    return Problem("run", None, rule, fix, code="request-invalid")


def _quota(plan: RunPlan, region: str, message: str) -> Problem:
    """The quota that the message names, with the request for what is used and wanted together.

    Source of both forms: gabehollombe-aws/jupyter-notebooks issue 1; aws/sagemaker-python-sdk issue 4939.
    """
    spot = plan.sagemaker is not None and plan.sagemaker.spot
    name = quota_name(f"ml.{plan.instance_type}", "spot" if spot else "on_demand")
    limit, used, wanted = "used up", 0.0, float(plan.nodes)
    if found := _IN_USE.search(message):
        name, limit = found[1], f"{float(found[2]):g}"
        used, wanted = float(found[3]), float(found[4])
    elif found := _EACH.search(message):
        name, limit, wanted = found[2], f"{float(found[3]):g}", float(found[1])
    ask = request(key_of(name), used + wanted, region)
    taken = f", {used:g} are in use" if used else ""
    rule = f"the account's quota “{name}” is {limit} in {region}{taken}, and the run needs {wanted:g}"
    other = "without --spot" if spot else "with --spot"
    fix = f"Request more, which takes hours to days: `{ask}`."
    if name.startswith("ml."):
        fix = f"{fix} Another machine, or this one {other}, has a quota of its own."
    return Problem("quota", None, rule, fix, code="quota-exceeded")


def _short(message: str) -> str:
    """The message without the list of allowed values."""
    text = re.sub(r"enum value set: \[[^\]]*\]?", "enum value set", message)
    return text if len(text) < 600 else f"{text[:600]} ..."
