"""Jobs of a Slurm system by scripts of its login node, which run as root (pure).

Jobs are those of the user `trainstack`; the way to run a script is the service's.
"""

import datetime
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from infra.errors import Problem, UserError
from infra.jobs.service import JobLogs, JobPhase, JobState, LostError, PhaseChange, ServiceJob
from infra.launchers import shell
from infra.launchers.runplan import RunPlan
from infra.launchers.shell import CODE_URI
from infra.slurm.loading import PROFILE
from smoke_training.names import RESULT_COPIES

CODE: Final = "code"
"""Folder of code and plan, in that of the job."""
HEAD: Final = f"""set -eu
[ ! -r {PROFILE} ] || . {PROFILE}
user=${{TRAINSTACK_USER:-trainstack}}
work=${{TRAINSTACK_SHARED:-/home/trainstack}}/smoke
as_user() {{ if [ "$(id -un)" = "$user" ]; then "$@"; else runuser -u "$user" -- "$@"; fi; }}
"""
"""Start of a script: the user of jobs, their folder, and `as_user`."""
_STATES: Final[Mapping[str, tuple[JobState, JobPhase]]] = {
    "PENDING": (JobState.RUNNING, JobPhase.WAITING),
    "CONFIGURING": (JobState.RUNNING, JobPhase.WAITING),
    "REQUEUED": (JobState.RUNNING, JobPhase.INTERRUPTED),
    "PREEMPTED": (JobState.RUNNING, JobPhase.INTERRUPTED),
    "RUNNING": (JobState.RUNNING, JobPhase.TRAINING),
    "COMPLETING": (JobState.RUNNING, JobPhase.ENDING),
    "COMPLETED": (JobState.COMPLETED, JobPhase.OVER),
    "CANCELLED": (JobState.STOPPED, JobPhase.OVER),
    "TIMEOUT": (JobState.STOPPED, JobPhase.OUT_OF_TIME),
}
_FAILED: Final = (JobState.FAILED, JobPhase.OVER)
_COLUMNS: Final = 7
OWN: Final = "${TRAINSTACK_STATE:-/var/lib/trainstack}"
"""Folder of root on the login node."""


def submission(plan: RunPlan, fetch: str) -> str:
    """The script that submits a job, after `fetch`, which puts code and plan into `$folder/code`."""
    inner = {key: value for key, value in plan.env.items() if key not in (CODE_URI, RESULT_COPIES)}
    script = shell.sbatch(replace(plan, env=inner))
    results = shlex.quote(plan.env[RESULT_COPIES])
    return (
        f"{HEAD}folder=$work/{shlex.quote(plan.name)}\nas_user mkdir -p $folder/{CODE}\n"
        f"{fetch}chmod -R a+rX $folder/{CODE}\n"
        f"cat > $folder/job.sh <<'TRAINSTACK'\n{script}TRAINSTACK\nchmod a+rx $folder/job.sh\n"
        # Not in the folder of the job, whose user could name another place for root to write to.
        f"mkdir -p {OWN}\nprintf '%s\\n' {results} > {OWN}/{shlex.quote(plan.name)}\n"
        "cd $folder\nas_user sbatch --parsable $folder/job.sh\n"
    )


def report(name: str, take: str) -> str:
    """The script that reports a job as one line; `take` runs before it once the job has a `$result`."""
    quoted = shlex.quote(name)
    # A member may give a job the name of the validation.
    columns = "JobIDRaw,State,ElapsedRaw,NNodes,Submit,Partition,Reason"
    return f"""{HEAD}result=$work/{quoted}/results/{quoted}/result.json
row=$(squeue -h -u "$user" --name {quoted} -o '%i|%T|0|%D|%V|%P|%r' | tail -n 1)
if [ -z "$row" ]; then
  row=$(sacct -nXP -u "$user" -S now-3days -E now --name {quoted} -o {columns} | tail -n 1)
  if [ -n "$row" ] && [ -f "$result" ] && [ ! -L "$result" ]; then
    {take}
  fi
fi
printf '%s\\n' "$row"
"""


def cancellation(name: str) -> str:
    """The script that cancels a job."""
    return f"{HEAD}as_user scancel --name {shlex.quote(name)}\n"


def logs(name: str) -> JobLogs:
    """Raise UserError: the log is a file of the job's folder."""
    rule, fix = "has its log on the login node", "Read the file *.log in ~trainstack/smoke/<name>."
    raise UserError([Problem("job", name, rule, fix, code="log-on-login-node")])


def described(name: str, stack: str, output: str) -> ServiceJob | None:
    """A job from the line of `report`; None for an empty one. Raises LostError for another output."""
    row = output.strip().splitlines()[-1:] or [""]
    if not row[0]:
        return None
    fields = row[0].split("|")
    if len(fields) != _COLUMNS:
        raise LostError(f"the login node reports {row[0]!r}")
    _, state, elapsed, nodes, submitted, partition, reason = fields
    word = state.split()[0].rstrip("+")
    over, phase = _STATES.get(word, _FAILED)
    seconds = int(elapsed) if elapsed.isdecimal() else None
    created = datetime.datetime.fromisoformat(submitted).replace(tzinfo=datetime.UTC)
    change = PhaseChange(created, phase, f"{state}, {reason}".strip(", "))
    return ServiceJob(
        name=name,
        stack=stack,
        person="",
        team="",
        machine=partition,
        nodes=int(nodes or 1),
        spot=False,
        state=over,
        phase=phase,
        reason="" if over is JobState.COMPLETED else f"Slurm ended it as {state}.",
        created=created,
        max_run_s=0,
        trained_s=seconds,
        billed_s=seconds if over.over else None,
        changes=(change,),
    )
