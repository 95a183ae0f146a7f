"""Names that Slurm accepts for partitions, nodes, accounts and QOS."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from infra.errors import Problem
from infra.naming import team_folder

BORROW: Final = "borrow"
"""QOS of jobs beyond the quota of their team: preempted by jobs within a quota."""
CPU_QOS: Final = "normal"
"""QOS of partitions without GPUs; Slurm creates it itself."""
VALIDATION: Final = "validation"
"""Account of the validation of a stack that this product provisions."""
# slurm.conf: `NodeName=DEFAULT`, `PartitionName=DEFAULT` set defaults, `Nodes=ALL` means every node;
# sacctmgr creates the account and user `root` and the QOS `normal` itself.
_RESERVED: Final = ("default", "all", "root", CPU_QOS, BORROW, VALIDATION)
_MOST_LETTERS: Final = 40
"""Most letters of a name of ours: `sacctmgr`, `squeue` and job variables print no longer ones whole."""


def account(team: str) -> str:
    """The account of a team, in lower case as slurmdbd stores it. Raises ValueError as `sanitize` does."""
    return team_folder(team)


def quota_qos(team: str, pool: str) -> str:
    """The QOS of a team's quota in a pool."""
    return f"{account(team)}-{pool}"


def node_prefix(pool: str) -> str:
    """Start of the names of a pool's nodes; a number follows.

    Slurm reads digits at the end of a prefix as part of the number, so a dash separates them.
    """
    return f"{pool}-"


def partition_problems(path: str, name: str) -> Iterator[Problem]:
    """The name of a pool can be that of a partition and of its nodes."""
    if name in _RESERVED:
        rule = "is a name with a meaning of its own in Slurm"
        yield Problem(path, name, rule, "Rename the pool, such as `gpu`.", code="slurm-name-reserved")
    elif not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        rule = "Slurm names partitions and nodes by letters, digits and dashes, a letter first"
        yield Problem(path, name, rule, "Rename the pool.", code="slurm-name-invalid")


def account_problems(path: str, team: str) -> Iterator[Problem]:
    """The name of a team can be that of an account."""
    try:
        name = account(team)
    except ValueError as error:
        yield Problem(path, team, str(error), "Rename the team.", code="slurm-name-invalid")
        return
    if name in _RESERVED:
        rule = f"its account would be {name}, a name with a meaning of its own in Slurm"
        yield Problem(path, team, rule, "Rename the team.", code="slurm-name-reserved")


def quota_problems(path: str, gpus: Mapping[str, int]) -> Iterator[Problem]:
    """A team has GPUs in some partition; `path` is that of its `gpus`."""
    if not any(gpus.values()):
        rule = "has a quota in no pool, so its jobs would always be the first to be preempted"
        fix = "Give it GPUs in a pool, or remove the team."
        yield Problem(path, dict(gpus), rule, fix, code="slurm-team-without-quota")
