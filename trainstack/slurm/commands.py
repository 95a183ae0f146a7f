"""Commands of a Slurm system, run here, on another host by ssh, or in a rehearsal."""

import os
import secrets
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from infra.errors import Problem, UserError

SEPARATOR = "|"
_CONNECTION_FAILED = 255
"""Exit code of ssh itself; others are those of the command (ssh(1), EXIT STATUS)."""


@dataclass(frozen=True)
class SlurmCommands:
    """A place where commands of Slurm run. Times in their output are seconds since 1970, in UTC."""

    host: str = ""
    """A host for ssh, as its configuration has it; empty: this machine."""
    environment: Mapping[str, str] | None = None
    """Variables of the commands; None: those of this process."""

    def output(self, *command: str) -> str:
        """Output of a command. Raises UserError where it cannot be run or fails."""
        settings = {"TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}
        if self.host:
            words = [*(f"{key}={value}" for key, value in settings.items()), *command]
            # A password cannot be asked for: output is read by this program.
            command = ("ssh", "-o", "BatchMode=yes", "--", self.host, f"env {shlex.join(words)}")
        environment = {**(os.environ if self.environment is None else self.environment), **settings}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        except OSError as error:
            fix = "Run it where Slurm's commands are on PATH, or name such a host with --ssh."
            raise UserError([Problem(command[0], None, str(error), fix, code="slurm-missing")]) from None
        if self.host and done.returncode == _CONNECTION_FAILED:
            fix = f"Let `ssh {self.host} squeue` work without a password first."
            raise UserError([Problem("--ssh", self.host, done.stderr.strip(), fix, code="ssh-failed")])
        if done.returncode:
            fix = "Check slurmctld and slurmdbd, and that SLURM_CONF names this cluster."
            name = shlex.join(command[-1:]) if self.host else command[0]
            rule = done.stderr.strip() or f"exit code {done.returncode}"
            raise UserError([Problem(name, None, rule, fix, code="slurm-failed")])
        return done.stdout

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
