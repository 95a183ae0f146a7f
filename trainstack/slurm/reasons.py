"""Reasons why a job of Slurm does not run, from its reason code, with the numbers behind it.

Codes: schedmd.com/job_reason_codes.html; SchedMD/slurm src/common/slurm_protocol_defs.c, `job_reason_string`.
"""

import re
from collections.abc import Mapping
from typing import Final

from agents.queued_jobs.reasons import Kind, Reason
from infra.catalog.slurm_names import BORROW
from infra.slurm.conf import MILLS
from trainstack.slurm.jobs import AccountLimit, SlurmJob, SlurmState

_QUOTA: Final = ("QOSGrpGRES", "QOSGrpGRESRunMinutes", "QOSGrpCpuLimit", "QOSGrpMemLimit", "QOSGrpNodeLimit")
_BUDGET: Final = re.compile(r"AssocGrp(Billing|GRES)(Run)?Minutes")
_OTHER: Final[Mapping[str, tuple[Kind, str, str]]] = {
    "BeginTime": ("retry later", "it may not start before its begin time", ""),
    "Dependency": ("dependency", "jobs that it depends on have not ended", ""),
    "DependencyNeverSatisfied": ("dependency", "a job that it depends on has failed", "scancel {id}"),
    "JobHeldUser": ("held", "its owner holds it", "scontrol release {id}"),
    "JobHeldAdmin": ("held", "an administrator holds it", "ask an administrator"),
    "JobHoldMaxRequeue": ("requeue limit", "it was queued again too often", "scontrol release {id}"),
    "launch failed requeued held": (
        "requeue limit",
        "it could not start on its nodes, and is held",
        "ask an administrator for the log of its nodes, then scontrol release {id}",
    ),
    "JobArrayTaskLimit": ("other", "as many tasks of its array run as it allows at once", ""),
    "PartitionTimeLimit": ("never fits", "its time limit is above that of the partition", "a shorter --time"),
    "PartitionNodeLimit": ("never fits", "the partition has fewer nodes", "a smaller --nodes"),
    "PartitionDown": ("stopped", "its partition is down", ""),
    "PartitionInactive": ("stopped", "its partition starts no jobs", ""),
    "BadConstraints": ("never fits", "no node has all that it asks for", "another --constraint"),
    "Reservation": ("pool closed", "its nodes are reserved: the time of their capacity block", ""),
    "InvalidAccount": ("other", "its account no longer exists", "sbatch --account=ACCOUNT"),
    "InvalidQOS": ("other", "its QOS no longer exists", "sbatch without --qos"),
}  # fmt: skip


def reason(job: SlurmJob, state: SlurmState, ahead: int) -> Reason:
    """The reason that a job does not run; `ahead`: jobs of its partition that come first."""
    code = job.reason.partition(",")[0].strip("()")
    if job.state == "CF":
        return Reason("nodes booting", f"its {job.nodes} nodes of {job.partition} start")
    if code in _QUOTA:
        return _quota(job, state)
    if _BUDGET.fullmatch(code):
        return _budget(job, state)
    return _by_code(job, state, code, ahead)


def _by_code(job: SlurmJob, state: SlurmState, code: str, ahead: int) -> Reason:
    if code == "Priority" or (ahead and code in ("Resources", "None")):
        return Reason("behind others", f"{ahead or 'some'} jobs of {job.partition} come first")
    if code == "Resources":
        return _resources(job, state)
    if code in ("ReqNodeNotAvail", "NodeDown"):
        text = f"nodes that it needs are away: {job.reason}"
        return Reason("nodes away", text, "an administrator looks at sinfo --list-reasons")
    kind, text, fix = _OTHER.get(code, ("other", code, ""))
    return Reason(
        kind, "Slurm has not looked at it yet" if text in ("None", "") else text, fix.format(id=job.id)
    )


def _quota(job: SlurmJob, state: SlurmState) -> Reason:
    limit = state.quotas.get(job.qos)
    if limit is None:
        return Reason("quota", f"the quota {job.qos} is used")
    text = f"needs {job.gpus} GPUs; {job.qos} holds {state.held(job.qos)} of {limit}"
    return Reason("quota", text, f"GPUs of others that are idle: scontrol update JobId={job.id} QOS={BORROW}")


def _budget(job: SlurmJob, state: SlurmState) -> Reason:
    known = state.budgets.get(job.account, {})
    parts = []
    if "billing" in known:
        most = None if job.minutes is None else job.billing * job.minutes
        parts.append(_spent(known["billing"], most, MILLS * 60, "USD"))
    if "gres/gpu" in known:
        most = None if job.minutes is None else job.gpus * job.minutes
        parts.append(_spent(known["gres/gpu"], most, 60, "GPU-hours"))
    fix = "a shorter --time, or wait for the next month or a larger budget"
    return Reason("over budget", "; ".join(parts) or "the month's budget of its account", fix)


def _spent(limit: AccountLimit, most: float | None, unit: float, name: str) -> str:
    left = max(limit.limit - limit.used, 0) / unit
    needs = "" if most is None else f"needs up to {most / unit:,.2f} {name} by its time limit; "
    return f"{needs}{left:,.2f} of {limit.limit / unit:,.2f} {name} of the month are left"


def _resources(job: SlurmJob, state: SlurmState) -> Reason:
    there = [one for one in state.nodes if one.partition == job.partition]
    free = [one.gpus - one.used for one in there if one.usable or one.off]
    text = f"needs {job.gpus} GPUs on {job.nodes} nodes"
    each = -(-job.gpus // max(job.nodes, 1))
    if each and sum(free) >= job.gpus and sum(one >= each for one in free) < job.nodes:
        return Reason(
            "fragmentation", f"{text}; {sum(free)} GPUs are free in {job.partition}, spread over nodes"
        )
    return Reason(
        "resources", f"{text}; free: {sum(free)} of {sum(one.gpus for one in there)} in {job.partition}"
    )
