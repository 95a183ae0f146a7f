"""Accounts, QOS and limits as scripts for sacctmgr, which may run again; and reservations for scontrol."""

import datetime
from collections.abc import Iterator
from typing import Final

from infra.catalog import slurm_names as names
from infra.slurm.conf import MILLS
from infra.slurm.system import SlurmAccount, SlurmSystem

HEAD: Final = """#!/bin/sh
# Written by `trainstack slurm render`. May run again: limits are set to these values.
set -eu
add() { # adds what is missing
  out=$(sacctmgr -i add "$@" 2>&1) || case $out in
    *"already exists"* | *"Nothing new added"*) ;;
    *) printf '%s\\n' "$out" >&2; exit 1 ;;
  esac
}
change() {
  out=$(sacctmgr -i modify "$@" 2>&1) || case $out in
    *"Nothing modified"*) ;;
    *) printf '%s\\n' "$out" >&2; exit 1 ;;
  esac
}
"""
"""Start of scripts of sacctmgr: `add` and `change`, which may run again."""

_KNOWN = """# slurmdbd knows GPUs once slurmctld has registered with AccountingStorageTRES.
sacctmgr -nP show tres format=type,name | grep -q '^gres|gpu$' || {
  echo "Cluster and QOS are added. Start slurmctld, then run this script again." >&2; exit 3
}"""
NOT_YET: Final = 3
"""Exit code of accounts.sh before slurmctld has started for the first time."""


def budget_minutes(monthly_usd: float) -> int:
    """A budget in the unit of `GrpTRESMins=billing`: minutes of a billing in mills per hour."""
    return round(monthly_usd * MILLS * 60)


def accounts_script(system: SlurmSystem) -> str:
    """accounts.sh: the cluster, QOS, accounts, quotas and budgets."""
    lines = [HEAD.rstrip(), "", f"add cluster {system.cluster}"]
    quotas = [names.quota_qos(one.team, pool) for one in system.accounts for pool in one.quotas]
    lines += ["", "# slurmctld drops names from AllowQos that slurmdbd does not have when it starts."]
    lines += [f"add qos {qos}" for qos in (names.BORROW, *quotas)]
    if system.gpu_types:
        lines += ["", _KNOWN]
    lines += [
        "",
        "# Jobs beyond a quota: preempted by those within one. SIGTERM comes KillWait before the end; with a",
        "# GraceTime, a job that ends by itself meanwhile would count as failed, and not be queued again.",
    ]
    lines += [f"change qos {names.BORROW} set Priority=0 PreemptMode=Requeue GraceTime=0"]
    lines += ["", "# Quotas: GPUs of a team in a pool. DenyOnLimit: a job that never fits is refused."]
    for one in system.accounts:
        lines += [*_quotas(one)]
    lines += ["", "# Teams: share, and budget of a month in GPU minutes and in thousandths of a dollar x 60."]
    for one in system.accounts:
        lines += [*_account(one)]
    lines += ["", "# AllowQos with new names.", "scontrol reconfigure"]
    return "\n".join(lines) + "\n"


def _quotas(one: SlurmAccount) -> Iterator[str]:
    for pool, gpus in one.quotas.items():
        qos = names.quota_qos(one.team, pool)
        yield (
            f"change qos {qos} set GrpTRES=gres/gpu={gpus} Priority=1000 Preempt={names.BORROW} "
            "Flags=DenyOnLimit"
        )


def _account(one: SlurmAccount) -> Iterator[str]:
    quotas = [names.quota_qos(one.team, pool) for pool in one.quotas]
    allowed = ",".join([names.CPU_QOS, names.BORROW, *quotas])
    usd = -1 if one.monthly_usd is None else budget_minutes(one.monthly_usd)
    hours = -1 if one.monthly_gpu_hours is None else round(one.monthly_gpu_hours * 60)
    yield f"add account {one.name} Description={one.name} Organization={one.name}"
    # -1 removes a limit.
    yield (
        f"change account where name={one.name} set Fairshare={max(1, round(one.share * 100))} "
        f"GrpTRESMins=billing={usd},gres/gpu={hours} Qos={allowed}"
    )


def validation_script(user: str) -> str:
    """The account of validations, for a user or a word of the shell such as `"$user"`."""
    lines = [HEAD.rstrip(), f"add account {names.VALIDATION} Description=validation Organization=validation"]
    lines += [f"change account where name={names.VALIDATION} set Fairshare=1 Qos={names.BORROW}"]
    lines += [f"add user {user} account={names.VALIDATION}"]
    return "\n".join(lines) + "\n"


def users_script(system: SlurmSystem) -> str:
    """add-user.sh USER TEAM: a member of a team, who gets the QOS of a partition without naming it."""
    lines = [HEAD.rstrip()]
    lines += ["user=${1:?user name} team=${2:?account of the team}", 'case "$team" in']
    for one in system.accounts:
        lines.append(f"  {one.name})")
        lines.append(f'    add user "$user" account={one.name}')
        for partition in system.partitions:
            quota = names.quota_qos(one.team, partition.name)
            qos = quota if partition.name in one.quotas else names.BORROW
            if not partition.machine.gpus:
                qos = names.CPU_QOS
            lines.append(f'    add user "$user" account={one.name} partition={partition.name}')
            where = f'where name="$user" account={one.name} partition={partition.name}'
            lines.append(f"    change user {where} set DefaultQOS={qos}")
        lines.append("    ;;")
    known = ", ".join(one.name for one in system.accounts)
    lines.append(f'  *) echo "no account $team; there are {known}" >&2; exit 2 ;;')
    return "\n".join([*lines, "esac"]) + "\n"


def reservations_script(system: SlurmSystem) -> str | None:
    """reservations.sh: no job runs outside the times of capacity blocks; None without known times."""
    lines: list[str] = []
    for one in system.partitions:
        common = f"Nodes={one.node_names} Users=root Flags=MAINT,IGNORE_JOBS"
        if one.opens is not None:
            ends = one.opens.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")
            lines.append(f"reserve {one.name}-not-yet StartTime=now EndTime={ends} {common}")
        if one.closes is not None:
            starts = one.closes.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")
            lines.append(f"reserve {one.name}-is-over StartTime={starts} Duration=UNLIMITED {common}")
    if not lines:
        return None
    head = """#!/bin/sh
# Written by `trainstack slurm render`. Times are UTC: slurmctld's time zone must be UTC.
set -eu
reserve() { # replaces one of the same name
  name=$1; shift
  scontrol delete ReservationName="$name" 2>/dev/null || true
  scontrol create ReservationName="$name" "$@"
}"""
    return "\n".join([head, *lines]) + "\n"
