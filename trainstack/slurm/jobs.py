"""Jobs, nodes, quotas and budgets of a Slurm system, as its commands show them."""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from infra.errors import UserError
from trainstack.queues.state import Moment
from trainstack.slurm.commands import SlurmCommands

_JOBS: Final = {
    "JobArrayID": 64, "Account": 64, "QOS": 128, "Partition": 64, "StateCompact": 8, "Reason": 256,
    "SubmitTime": 32, "StartTime": 32, "EndTime": 32, "PriorityLong": 24, "TimeLimit": 32, "tres-alloc": 512,
    "NumNodes": 16, "Name": 256,
}  # fmt: skip
"""Fields of `squeue --Format` with their widths, without which 22.05 cuts them at 20 letters. A job's name
is the last: it may have any character."""
_NODES: Final = {"NodeList": 128, "Partition": 64, "StateLong": 32, "Gres": 256, "GresUsed": 256}
_GPUS: Final = re.compile(r"\bgres/gpu=(\d+)")
_BILLING: Final = re.compile(r"\bbilling=(\d+)")
# `gpu:a100:8(IDX:0-7)`; `gpu:(null):8(...)` without a type (SchedMD/slurm 22.05 src/common/gres.c).
_GRES: Final = re.compile(r"\bgpu(?::(?:\(null\)|[^:,()]+))?:(\d+)")
# [days-]hours:minutes:seconds, or minutes:seconds (squeue(1), %l).
_DURATION: Final = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)")
# Suffixes of states of nodes that take no job now: not responding, powered off or down, booting, in
# maintenance (sinfo(1), NODE STATE CODES). Those of `-`, `@` and `+` still run jobs.
_AWAY: Final = frozenset("*~#!%$^")
_MARKS: Final = "*~#!%$@^-+"
# Pending, held or to be queued again: flags hide the state below (`job_state_string_compact`).
_WAITING: Final = frozenset(("PD", "RH", "RD", "SE", "RQ", "RF"))
_ENDING: Final = "CG"
_ELSEWHERE: Final = "RV"  # the sibling of a job that another cluster of a federation runs
_USABLE: Final = frozenset(("idle", "mixed", "allocated", "completing", "planned"))
_OFF: Final = "~"


@dataclass(frozen=True)
class SlurmJob:
    """A job, or the waiting tasks of an array."""

    id: str
    name: str
    account: str
    qos: str
    partitions: tuple[str, ...]
    """Of a waiting job all that it names, in its order; else the one of its nodes."""
    state: str
    """Short state such as PD, R, CF (squeue(1), JOB STATE CODES)."""
    reason: str
    submitted: Moment
    starts: Moment | None
    """Of a waiting job the planned start; None without a plan."""
    ends: Moment | None
    priority: int
    """0: held."""
    minutes: float | None
    """Time limit; None: none."""
    gpus: int
    """Of one task."""
    billing: int
    """Thousandths of a dollar an hour, while it runs."""
    nodes: int

    @property
    def partition(self) -> str:
        """Its partitions as a job names them."""
        return ",".join(self.partitions)

    @property
    def waiting(self) -> bool:
        """True while it has no resources yet."""
        return self.state in _WAITING

    @property
    def holding(self) -> bool:
        """True while it has nodes."""
        return not self.waiting and self.state != _ENDING


@dataclass(frozen=True)
class SlurmNode:
    """A node in a partition."""

    name: str
    partition: str
    usable: bool
    """It runs and takes jobs."""
    off: bool
    """Powered down: a job starts it."""
    gpus: int
    used: int


@dataclass(frozen=True)
class AccountLimit:
    """A budget of an account in one unit: minutes of billing, or of GPUs."""

    limit: float
    used: float
    """Used since the month began, and promised to running jobs by their time limits."""


@dataclass(frozen=True)
class SlurmState:
    """A Slurm system at one moment."""

    taken: Moment
    jobs: tuple[SlurmJob, ...]
    nodes: tuple[SlurmNode, ...]
    quotas: Mapping[str, int]
    """GPUs of each QOS with a limit."""
    qos: frozenset[str]
    """Names of all QOS."""
    budgets: Mapping[str, Mapping[str, AccountLimit]]
    """By account, and by `billing` and `gres/gpu`."""
    gaps: tuple[str, ...]
    """What could not be read."""

    def held(self, qos: str) -> int:
        """GPUs that jobs of a QOS hold."""
        return sum(one.gpus for one in self.jobs if one.qos == qos and one.holding)


def read(slurm: SlurmCommands) -> SlurmState:
    """The state now; quotas and budgets may be missing. Raises UserError without jobs or nodes."""
    jobs = slurm.formatted(("squeue", "--all", "--noheader"), _JOBS)
    nodes = slurm.formatted(("sinfo", "--all", "--noheader", "--Node"), _NODES)
    gaps: list[str] = []
    quotas: dict[str, int] = {}
    qos: frozenset[str] = frozenset()
    budgets: dict[str, dict[str, AccountLimit]] = {}
    try:
        rows = slurm.rows("sacctmgr", "-nP", "show", "qos", "format=Name,GrpTRES", count=2)
        quotas, qos = _quotas(rows), frozenset(name for name, _ in rows)
    except UserError as error:
        gaps.append(f"quotas are not shown: {error}")
    try:
        fields = "--format=Account,User,GrpTRESMins,GrpTRESRaw,TRESRunMins"
        budgets = _budgets(slurm.rows("sshare", "--all", "--noheader", "--parsable2", fields, count=5))
    except UserError as error:
        gaps.append(f"budgets are not shown: {error}")
    try:
        gaps += _private(slurm.output("scontrol", "show", "config"))
    except UserError as error:
        gaps.append(f"it is not known whether jobs of others are hidden: {error}")
    return SlurmState(
        taken=datetime.datetime.now(datetime.UTC),
        jobs=tuple(_job(one) for one in jobs if one["StateCompact"] != _ELSEWHERE),
        nodes=tuple(map(_node, nodes)),
        quotas=quotas,
        qos=qos,
        budgets=budgets,
        gaps=tuple(gaps),
    )


def _job(found: Mapping[str, str]) -> SlurmJob:
    priority, nodes = found["PriorityLong"], re.match(r"\d+", found["NumNodes"])
    return SlurmJob(
        id=found["JobArrayID"],
        name=found["Name"],
        account=found["Account"],
        qos=found["QOS"],
        partitions=tuple(found["Partition"].split(",")),
        state=found["StateCompact"],
        reason=found["Reason"],
        submitted=_moment(found["SubmitTime"]) or datetime.datetime.now(datetime.UTC),
        starts=_moment(found["StartTime"]),
        ends=_moment(found["EndTime"]),
        priority=int(priority) if priority.isdecimal() else 0,
        minutes=_minutes(found["TimeLimit"]),
        gpus=_number(_GPUS, found["tres-alloc"]),
        billing=_number(_BILLING, found["tres-alloc"]),
        nodes=int(nodes[0]) if nodes else 1,
    )


def _node(found: Mapping[str, str]) -> SlurmNode:
    state = found["StateLong"]
    base = state.rstrip(_MARKS)
    marks = state[len(base) :]
    return SlurmNode(
        name=found["NodeList"],
        partition=found["Partition"].rstrip("*"),
        usable=base in _USABLE and not _AWAY.intersection(marks),
        off=base in _USABLE and _OFF in marks,
        gpus=sum(map(int, _GRES.findall(found["Gres"]))),
        used=sum(map(int, _GRES.findall(found["GresUsed"]))),
    )


def _moment(text: str) -> Moment | None:
    """A time of squeue, in UTC; newer versions print seconds since 1970, as asked."""
    if text.isdecimal():
        return datetime.datetime.fromtimestamp(int(text), datetime.UTC) if int(text) else None
    try:
        return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)
    except ValueError:
        return None


def _minutes(text: str) -> float | None:
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(one or 0) for one in found.groups())
    return days * 1440 + hours * 60 + minutes + seconds / 60


def _number(pattern: re.Pattern[str], tres: str) -> int:
    found = pattern.search(tres)
    return int(found[1]) if found else 0


def _private(config: str) -> list[str]:
    """A note where members do not see jobs of others (slurm.conf(5), PrivateData)."""
    found = re.search(r"^PrivateData\s*=\s*(.*?)\s*$", config, re.MULTILINE)
    hidden = {"jobs", "usage"}.intersection(found[1].split(",") if found else ())
    why = "unless you are an operator, jobs of others, places and free GPUs are not all shown"
    return [f"PrivateData has {', '.join(sorted(hidden))}: {why}"] if hidden else []


def _quotas(rows: list[list[str]]) -> dict[str, int]:
    return {name: _number(_GPUS, tres) for name, tres in rows if _GPUS.search(tres)}


def _budgets(rows: list[list[str]]) -> dict[str, dict[str, AccountLimit]]:
    """Rows of sshare: those of accounts have no user."""
    found: dict[str, dict[str, AccountLimit]] = {}
    for account, user, limits, used, running in rows:
        for kind, pattern in (("billing", _BILLING), ("gres/gpu", _GPUS)):
            if not user and (limit := pattern.search(limits)):
                spent = _number(pattern, used) + _number(pattern, running)
                found.setdefault(account, {})[kind] = AccountLimit(int(limit[1]), spent)
    return found
