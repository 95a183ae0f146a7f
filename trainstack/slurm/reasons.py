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

NODES_DOWN: Final = "Nodes required for job are DOWN"
"""Beginning of Slurm's sentence about nodes that are down, drained or taken by higher partitions."""
_QUOTA: Final = "QOSGrpGRES"
_BUDGET: Final = re.compile(r"AssocGrp(Billing|GRES)(Run)?Minutes")
# A reservation of all nodes of a partition with the flag MAINT (src/slurmctld/reservation.c).
_RESERVED: Final = ("Reserved for maintenance", "Reservation")
_RELEASE: Final = "scontrol release {id}"
_TIMES: Final = "a shorter --time: scontrol update JobId={id} TimeLimit=MINUTES"
_OTHER: Final[Mapping[str, tuple[Kind, str, str]]] = {
    "BeginTime": ("retry later", "it may not start before its begin time, which a requeue sets, too", ""),
    "Dependency": ("dependency", "jobs that it depends on have not ended", ""),
    "DependencyNeverSatisfied": ("dependency", "a job that it depends on has failed", "scancel {id}"),
    "JobHeldUser": ("held", "its owner holds it", _RELEASE),
    "JobHeldAdmin": ("held", "an administrator holds it", "ask an administrator"),
    "ReservationDeleted": ("held", "its reservation was deleted", _RELEASE),
    "JobArrayTaskLimit": ("other", "as many tasks of its array run as it allows at once", ""),
    "PartitionTimeLimit": ("never fits", "its time limit is above that of the partition", _TIMES),
    "PartitionNodeLimit": ("never fits", "the partition has fewer nodes", "a smaller --nodes"),
    "PartitionConfig": ("never fits", "its partition does not accept it", "other --nodes or --time"),
    "PartitionDown": ("stopped", "its partition is down", ""),
    "PartitionInactive": ("stopped", "its partition starts no jobs", ""),
    "BadConstraints": ("never fits", "no node has all that it asks for", "another --constraint"),
    "InvalidAccount": ("other", "its account no longer exists", "sbatch --account=ACCOUNT"),
    "InvalidQOS": ("other", "its QOS no longer exists", "sbatch without --qos"),
    "AccountNotAllowed": ("never fits", "its account may not use the partition", "sbatch --account=ACCOUNT"),
    "QOSNotAllowed": ("never fits", "its QOS may not be used there", "sbatch without --qos"),
    "Cleaning": ("retry later", "its last attempt still ends", ""),
    "Prolog": ("nodes booting", "its nodes are checked", ""),
    "Licenses": ("other", "its licenses are in use", ""),
    "MaxPoweredUpNodes": ("resources", "as many nodes run as are allowed at once", ""),
    "MaxGRESPerAccount": ("quota", "its account holds as many GPUs as it may", ""),
    "QOSMaxGRESPerUser": ("quota", "its owner holds as many GPUs as the QOS allows a user", ""),
    "AssocGrpGRES": ("quota", "its account holds as many GPUs as it may", ""),
    "QOSMaxJobsPerUserLimit": ("quota", "as many jobs of its owner run as the QOS allows", ""),
    "AssocMaxJobsLimit": ("quota", "as many jobs of its account run as it allows", ""),
    "QOSMaxWallDurationPerJobLimit": ("never fits", "its time limit is above that of its QOS", _TIMES),
    "AssocMaxWallDurationPerJobLimit": ("never fits", "its time limit is above its account's", _TIMES),
}  # fmt: skip
# Sentences of jobs that Slurm queued again and holds. An owner may release those of the first three.
_HELD_AGAIN: Final = re.compile(
    r"(launch failed|job|user env retrieval failed) requeued (?:in )?(?:held|special exit)|"
    r"(?:launch failure limit exceeded) requeued held|JobHoldMaxRequeue"
)


def code_of(job: SlurmJob) -> str:
    """The code in a job's reason, without the words behind it."""
    return NODES_DOWN if job.reason.startswith(NODES_DOWN) else job.reason.partition(",")[0].strip("()")


def reason(job: SlurmJob, state: SlurmState, ahead: int) -> Reason:
    """The reason that a job does not run; `ahead`: jobs of its partition that come first."""
    code = code_of(job)
    if job.state == "CF" and code != "Prolog":
        return Reason("nodes booting", f"its {job.nodes} nodes of {job.partition} start")
    if code == _QUOTA:
        return _quota(job, state)
    if _BUDGET.fullmatch(code):
        return _budget(job, state, code)
    if held := _HELD_AGAIN.search(job.reason):
        text = "Slurm queued it again and holds it, because it could not start or asked for that"
        fix = _RELEASE.format(id=_number(job)) if held[1] else "ask an administrator, or submit it again"
        return Reason("requeue limit", text, f"read its log and that of its nodes, then {fix}")
    return _by_code(job, state, code, ahead)


def _number(job: SlurmJob) -> str:
    """The number for commands: of waiting tasks that of their array."""
    return job.id.partition("_[")[0]


def _by_code(job: SlurmJob, state: SlurmState, code: str, ahead: int) -> Reason:
    if any(text in job.reason for text in _RESERVED) and code != "ReservationDeleted":
        text = "a reservation of its nodes (maintenance, end of a capacity block) begins before it ends"
        return Reason("pool closed", text, _TIMES.format(id=_number(job)))
    if code == "Priority" or (ahead and code in ("Resources", "None")):
        return Reason("behind others", f"{ahead or 'some'} jobs of {job.partition} come first")
    if code == "Resources":
        return _resources(job, state)
    if code in ("ReqNodeNotAvail", "NodeDown", NODES_DOWN):
        text = f"nodes that it needs are away or taken: {job.reason}"
        return Reason("nodes away", text, "an administrator looks at sinfo --list-reasons")
    kind, text, fix = _OTHER.get(code, ("other", code, ""))
    if text in ("None", ""):
        text = "Slurm has not looked at it yet"
    return Reason(kind, text, fix.format(id=_number(job)))


def _quota(job: SlurmJob, state: SlurmState) -> Reason:
    limit = state.quotas.get(job.qos)
    if limit is None:
        return Reason("quota", f"the quota {job.qos} is used")
    text = f"needs {job.gpus} GPUs; {job.qos} holds {state.held(job.qos)} of {limit}"
    fix = f"scontrol update JobId={_number(job)} QOS={BORROW}; others may then preempt it"
    return Reason("quota", text, f"idle GPUs of others: {fix}" if BORROW in state.qos else "")


def _budget(job: SlurmJob, state: SlurmState, code: str) -> Reason:
    known = state.budgets.get(job.account, {})
    parts = []
    if "billing" in known and "Billing" in code:
        most = None if job.minutes is None else job.billing * job.minutes
        parts.append(_spent(known["billing"], most, MILLS * 60, "USD"))
    if "gres/gpu" in known and "GRES" in code:
        most = None if job.minutes is None else job.gpus * job.minutes
        parts.append(_spent(known["gres/gpu"], most, 60, "GPU-hours"))
    fix = "a shorter --time, or wait for the next month or a larger budget"
    return Reason("over budget", "; ".join(parts) or "the month's budget of its account", fix)


def _spent(limit: AccountLimit, most: float | None, unit: float, name: str) -> str:
    left = max(limit.limit - limit.used, 0) / unit
    needs = "" if most is None else f"needs up to {most / unit:,.2f} {name} by its time limit; "
    return f"{needs}{left:,.2f} of {limit.limit / unit:,.2f} {name} of the month are left"


def _resources(job: SlurmJob, state: SlurmState) -> Reason:
    # A node that is in two of its partitions counts once.
    there = list({one.name: one for one in state.nodes if one.partition in job.partitions}.values())
    free = [one.gpus - one.used for one in there if one.usable or one.off]
    text = f"needs {job.gpus} GPUs on {job.nodes} nodes"
    if not job.gpus:
        return Reason("resources", f"needs {job.nodes} nodes of {job.partition}, which others use")
    each = -(-job.gpus // max(job.nodes, 1))
    # Without --nodes, Slurm shows a guess of their number.
    possible = each <= max((one.gpus for one in there), default=0)
    if possible and sum(free) >= job.gpus and sum(one >= each for one in free) < job.nodes:
        return Reason(
            "fragmentation", f"{text}; {sum(free)} GPUs are free in {job.partition}, spread over nodes"
        )
    amount = f"{sum(free)} of {sum(one.gpus for one in there)} in {job.partition}"
    more = "; cores, memory or nodes that are planned for others are short" if sum(free) >= job.gpus else ""
    return Reason("resources", f"{text}; free: {amount}{more}")
