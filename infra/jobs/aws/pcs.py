"""Slurm of AWS PCS as a job service: scripts of the login node, which Systems Manager runs.

Untested in a real account: requests are checked against the service models of botocore, scripts by a real
Slurm. Submission and reports are scripts of the document `AWS-RunShellScript`, as root of the login node;
jobs are those of the user `trainstack`.
"""

import datetime
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from infra.clouds.aws.login import Clients
from infra.errors import Problem, UserError
from infra.jobs.aws.service import SageMakerService, asked
from infra.jobs.service import (
    CallerIdentity,
    JobLogs,
    JobPhase,
    JobState,
    LostError,
    Moment,
    PhaseChange,
    ServiceJob,
)
from infra.launchers import shell
from infra.launchers.runplan import RunPlan
from infra.launchers.shell import CODE_URI
from infra.naming import LOGIN_TAG, TAG_PREFIX
from smoke_training.names import RESULT_COPIES

_STACK_TAG: Final = f"{TAG_PREFIX}:stack"
DOCUMENT: Final = "AWS-RunShellScript"
CODE: Final = "code"
"""Folder of code and plan, in that of the job."""
_PATIENCE_S, _PAUSE_S = 120.0, 1.0
_HEAD: Final = """set -eu
[ ! -r /etc/profile.d/slurm.sh ] || . /etc/profile.d/slurm.sh
user=${TRAINSTACK_USER:-trainstack}
work=${TRAINSTACK_SHARED:-/home/trainstack}/smoke
as_user() { if [ "$(id -un)" = "$user" ]; then "$@"; else runuser -u "$user" -- "$@"; fi; }
"""
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
_OWN: Final = "${TRAINSTACK_STATE:-/var/lib/trainstack}"
_UNDONE: Final = ("Failed", "TimedOut", "Cancelled", "Undeliverable", "Terminated", "InvalidPlatform")


class PcsService:
    """Jobs of the stack's cluster, by its login node. See `service.JobService`."""

    unseen = 0

    def __init__(
        self, clients: Clients, stack: str, region: str, *, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._clients, self._region, self._pause = clients, region, pause
        self._bucket = SageMakerService(clients, stack, region)
        self._stack = stack

    def caller(self) -> CallerIdentity:
        """The identity of the login."""
        return self._bucket.caller()

    def keep(self, uri: str, content: bytes) -> bool:
        """Write an object unless it exists; return whether it was missing."""
        return self._bucket.keep(uri, content)

    def content(self, uri: str) -> bytes:
        """The content of an object."""
        return self._bucket.content(uri)

    def submit(self, plan: RunPlan) -> None:
        """Submit a job with sbatch. Raises UserError with the output of a script that fails."""
        self._script(submission(plan), what=f"submit {plan.name}")

    def job(self, name: str) -> ServiceJob | None:
        """The job of that name by squeue and sacct; None if Slurm knows none."""
        return described(name, self._stack, self._script(report(name), what=f"ask for {name}"))

    def jobs(self, _since: Moment | None = None, *, running: bool = False) -> Iterator[ServiceJob]:  # noqa: ARG002
        """None: an interrupted deployment submits again."""
        yield from ()

    def stop(self, name: str) -> None:
        """Cancel a job."""
        script = f"{_HEAD}as_user scancel --name {shlex.quote(name)}\n"
        self._script(script, what=f"cancel {name}")

    def logs(self, name: str) -> JobLogs:
        """Not supported: the log is a file of the job's folder."""
        rule, fix = "has its log on the login node", "Read the file *.log in ~trainstack/smoke/<name>."
        raise UserError([Problem("job", name, rule, fix, code="log-on-login-node")])

    def _script(self, text: str, *, what: str) -> str:
        """The output of a script on the login node. Raises UserError, LostError."""
        ssm = self._clients("ssm", self._region)
        with asked(what):
            sent = ssm.send_command(
                DocumentName=DOCUMENT,
                Targets=[
                    {"Key": f"tag:{key}", "Values": [value]}
                    for key, value in ((_STACK_TAG, self._stack), LOGIN_TAG)
                ],
                Parameters={"commands": text.splitlines()},
            )
        command, waited = sent["Command"]["CommandId"], 0.0
        while waited < _PATIENCE_S:
            with asked(what):
                found = ssm.list_command_invocations(CommandId=command, Details=True)["CommandInvocations"]
            for one in found:
                output = "".join(str(plugin.get("Output", "")) for plugin in one.get("CommandPlugins", ()))
                if one["Status"] == "Success":
                    return output
                if one["Status"] in _UNDONE:
                    rule = f"the login node could not {what}: {output.strip() or one['Status']}"
                    fix = "Connect to it with Systems Manager, and run the command of the output by hand."
                    raise UserError(
                        [Problem("login node", one["InstanceId"], rule, fix, code="login-script")]
                    )
            self._pause(_PAUSE_S)
            waited += _PAUSE_S
        raise LostError("the login node does not answer to Systems Manager")


def submission(plan: RunPlan) -> str:
    """The script that fetches code and plan and submits a job."""
    inner = {key: value for key, value in plan.env.items() if key not in (CODE_URI, RESULT_COPIES)}
    script = shell.sbatch(replace(plan, env=inner))
    code, results = shlex.quote(plan.env[CODE_URI]), shlex.quote(plan.env[RESULT_COPIES])
    return (
        f"{_HEAD}folder=$work/{shlex.quote(plan.name)}\nas_user mkdir -p $folder/{CODE}\n"
        f"aws s3 cp --recursive --quiet {code} $folder/{CODE}/\nchmod -R a+rX $folder/{CODE}\n"
        f"cat > $folder/job.sh <<'TRAINSTACK'\n{script}TRAINSTACK\nchmod a+rx $folder/job.sh\n"
        # Not in the folder of the job, whose user could name another place for root to write to.
        f"mkdir -p {_OWN}\nprintf '%s\\n' {results} > {_OWN}/{shlex.quote(plan.name)}\n"
        "cd $folder\nas_user sbatch --parsable $folder/job.sh\n"
    )


def report(name: str) -> str:
    """The script that reports a job as one line, and copies its result once it is over."""
    quoted = shlex.quote(name)
    columns = "JobIDRaw,State,ElapsedRaw,NNodes,Submit,Partition,Reason"
    return f"""{_HEAD}result=$work/{quoted}/results/{quoted}/result.json
row=$(squeue -h --name {quoted} -o '%i|%T|0|%D|%V|%P|%r' | tail -n 1)
if [ -z "$row" ]; then
  row=$(sacct -nXP -S now-3days -E now --name {quoted} -o {columns} | tail -n 1)
  if [ -n "$row" ] && [ -f "$result" ] && [ ! -L "$result" ]; then
    aws s3 cp --quiet "$result" "$(cat {_OWN}/{quoted})/{quoted}/result.json"
  fi
fi
printf '%s\\n' "$row"
"""


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
