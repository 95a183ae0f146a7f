"""Commands of a Slurm system, run here, on another host by ssh, or in a rehearsal."""

import os
import secrets
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from infra.errors import Problem, UserError
from infra.slurm.loading import PROFILE

SEPARATOR = "|"
_CONNECTION_FAILED = 255
"""Exit code of ssh itself; others are those of the command (ssh(1), EXIT STATUS)."""
_NOT_FOUND = 127
_SETTINGS = {"TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}
# Variables by which squeue and sinfo leave out rows (SchedMD/slurm src/squeue/opts.c, src/sinfo/opts.c).
_FILTERS = (
    *("SQUEUE_STATES", "SQUEUE_USERS", "SQUEUE_PARTITION", "SQUEUE_ACCOUNT", "SQUEUE_QOS", "SQUEUE_NAMES"),
    *("SQUEUE_LICENSES", "SQUEUE_FORMAT", "SQUEUE_FORMAT2", "SQUEUE_SORT", "SINFO_PARTITION", "SINFO_FORMAT"),
    *("SINFO_SORT", "SLURM_CLUSTERS"),
)


@dataclass(frozen=True)
class SlurmCommands:
    """A place where commands of Slurm run. Times in their output are seconds since 1970, in UTC."""

    host: str = ""
    """A host for ssh, as its configuration has it; empty: this machine."""
    environment: Mapping[str, str] | None = None
    """Variables of the commands; None: those of this process."""

    def output(self, *command: str) -> str:
        """Output of a command. Raises UserError where it cannot be run or fails."""
        name, environment = command[0], self._environment()
        if self.host:
            environment, command = dict(os.environ), self._by_ssh(command)
        try:
            # squeue cuts names by bytes, so the end of one may be no whole character.
            done = subprocess.run(
                command, env=environment, capture_output=True, encoding="utf-8", errors="replace", check=False
            )
        except OSError as error:
            raise _missing(command[0], str(error)) from None
        if self.host and done.returncode == _CONNECTION_FAILED:
            fix = f"Let `ssh {self.host} squeue` work without a password first."
            raise UserError([Problem("--ssh", self.host, done.stderr.strip(), fix, code="ssh-failed")])
        if self.host and done.returncode == _NOT_FOUND:
            raise _missing(name, f"is not on PATH of {self.host}")
        if done.returncode:
            fix = "Check slurmctld and slurmdbd, and that SLURM_CONF names this cluster."
            rule = done.stderr.strip() or f"exit code {done.returncode}"
            raise UserError([Problem(name, None, rule, fix, code="slurm-failed")])
        return done.stdout

    def _environment(self) -> dict[str, str]:
        given = os.environ if self.environment is None else self.environment
        return {**{key: value for key, value in given.items() if key not in _FILTERS}, **_SETTINGS}

    def _by_ssh(self, command: Sequence[str]) -> tuple[str, ...]:
        """The command for a login node, whose settings for shells may have the PATH of Slurm.

        A command over ssh has no login shell. A password cannot be asked for: this program reads the output.
        """
        unset = " ".join(_FILTERS)
        words = shlex.join([*(f"{key}={value}" for key, value in _SETTINGS.items()), *command])
        script = f"[ ! -r {PROFILE} ] || . {PROFILE}; unset {unset}; exec env {words}"
        options = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=20")
        return ("ssh", *options, "--", self.host, f"sh -c {shlex.quote(script)}")

    def rows(self, *command: str, count: int) -> list[list[str]]:
        """Rows of `count` fields between `SEPARATOR`s, without blanks around them."""
        lines = self.output(*command).splitlines()
        return [[word.strip() for word in line.split(SEPARATOR, count - 1)] for line in lines if line.strip()]

    def formatted(self, command: Sequence[str], fields: Mapping[str, int]) -> list[dict[str, str]]:
        """Fields by name of a command with `--Format`; `fields`: their widths. The last may have a separator.

        Each row ends with a word that is chosen for this call: a member who knew it could put rows of other
        jobs into the name of a job.
        """
        end = f"{SEPARATOR}{secrets.token_hex(8)}"
        *first, last = fields
        columns = [*(f"{name}:{fields[name]}{SEPARATOR}" for name in first), f"{last}:{fields[last]}{end}"]
        rows = self.output(*command, f"--Format={','.join(columns)}").split(end)
        words = ([word.strip() for word in row.split(SEPARATOR, len(first))] for row in rows if row.strip())
        return [dict(zip(fields, row, strict=True)) for row in words]


def _missing(name: str, why: str) -> UserError:
    fix = "Run it where Slurm's commands are on PATH, or name such a host with --ssh."
    return UserError([Problem(name, None, why, fix, code="slurm-missing")])
