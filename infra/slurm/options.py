"""Settings of a Slurm system that a spec does not state: hosts, version, programs that start machines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from infra.errors import Problem

OLDEST: Final = (22, 5)
"""The version on which tests load the files (Debian 12)."""
YAML_TOPOLOGY: Final = (25, 5)
"""First version that reads topology.yaml (SchedMD, slurm.schedmd.com/topology.yaml.html)."""
_VERSION = re.compile(r"([0-9]{2})\.(0[2-9]|1[01])(\.[0-9]+)?")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9-]{1,63})*")


@dataclass(frozen=True)
class SystemOptions:
    """Settings of the system beside the spec."""

    controller: str = "slurmctld"
    """Short host name of the machine of slurmctld."""
    accounting: str = ""
    """Host of slurmdbd; empty: the controller's."""
    version: str = "25.05"
    """Version of Slurm."""
    resume_program: str = ""
    """Program that starts machines of nodes; empty: nodes always run."""
    suspend_program: str = ""
    """Program that ends machines of nodes."""
    nodes_per_switch: int = 0
    """Nodes below one leaf switch in pools with RDMA; 0: a pool is below one switch."""
    folder: str = "/etc/slurm"
    """Folder of the files on every host."""
    node_check: str = ""
    """Command of sh in prolog.sh, epilog.sh and health.sh: where it fails, the node takes no jobs."""

    @property
    def release(self) -> tuple[int, int]:
        """Year and month of the version."""
        year, month = self.version.split(".")[:2]
        return int(year), int(month)

    @property
    def powers(self) -> bool:
        """True if programs start and end machines of nodes."""
        return bool(self.resume_program)


def option_problems(options: SystemOptions) -> Iterator[Problem]:
    """SystemOptions that no Slurm accepts."""
    if not _VERSION.fullmatch(options.version):
        rule, fix = "is no version of Slurm", "Write year and month, such as 25.05."
        yield Problem("--slurm-version", options.version, rule, fix, code="slurm-version-invalid")
    elif options.release < OLDEST:
        rule = "is older than 22.05, from which on srun takes --cpus-per-task"
        fix = "Update Slurm; 22.05 is the oldest with which the files are tested."
        yield Problem("--slurm-version", options.version, rule, fix, code="slurm-version-too-old")
    for path, value in (("--controller", options.controller), ("--accounting-host", options.accounting)):
        if value and not _HOST.fullmatch(value):
            rule, fix = "is no host name", "Write the name that `hostname -s` prints there."
            yield Problem(path, value, rule, fix, code="slurm-host-invalid")
    programs = {"--resume-program": options.resume_program, "--suspend-program": options.suspend_program}
    if len([one for one in programs.values() if one]) == 1:
        path, value = next((name, one) for name, one in programs.items() if not one)
        rule, fix = "is required with the other program", "Name both, or none: then nodes always run."
        yield Problem(path, value or None, rule, fix, code="slurm-program-missing")
    for path, value in (*programs.items(), ("--folder", options.folder)):
        if value and (not PurePosixPath(value).is_absolute() or re.search(r"[\s#\"']", value)):
            rule, fix = "must be an absolute path without spaces, quotes and #", "Write such a path."
            yield Problem(path, value, rule, fix, code="slurm-path-invalid")
    if options.nodes_per_switch < 0:
        fix = "Write a number of nodes, or 0 for one switch per pool."
        yield Problem(
            "--nodes-per-switch",
            options.nodes_per_switch,
            "must not be negative",
            fix,
            code="slurm-switch-size",
        )
