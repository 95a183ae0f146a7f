"""Slurm of AWS PCS as a job service: scripts of the login node, which Systems Manager runs.

Untested in a real account: requests are checked against the service models of botocore, scripts by a real
Slurm. Submission and reports are scripts of the document `AWS-RunShellScript`, as root of the login node;
jobs are those of the user `trainstack`.
"""

import shlex
import time
from collections.abc import Callable, Iterator
from typing import Final

from infra.clouds.aws.login import Clients
from infra.errors import Problem, UserError
from infra.jobs import slurm
from infra.jobs.aws.service import SageMakerService, asked
from infra.jobs.service import (
    CallerIdentity,
    JobLogs,
    LostError,
    Moment,
    ServiceJob,
)
from infra.launchers.runplan import RunPlan
from infra.launchers.shell import CODE_URI
from infra.naming import LOGIN_TAG, TAG_PREFIX

_STACK_TAG: Final = f"{TAG_PREFIX}:stack"
DOCUMENT: Final = "AWS-RunShellScript"
_PATIENCE_S, _PAUSE_S = 120.0, 1.0
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
        code = shlex.quote(plan.env[CODE_URI])
        fetch = f"aws s3 cp --recursive --quiet {code} $folder/{slurm.CODE}/\n"
        self._script(slurm.submission(plan, fetch), what=f"submit {plan.name}")

    def job(self, name: str) -> ServiceJob | None:
        """The job of that name by squeue and sacct; None if Slurm knows none."""
        quoted = shlex.quote(name)
        take = f'aws s3 cp --quiet "$result" "$(cat {slurm.OWN}/{quoted})/{quoted}/result.json"'
        output = self._script(slurm.report(name, take), what=f"ask for {name}")
        return slurm.described(name, self._stack, output)

    def jobs(self, _since: Moment | None = None, *, running: bool = False) -> Iterator[ServiceJob]:  # noqa: ARG002
        """None: an interrupted deployment submits again."""
        yield from ()

    def stop(self, name: str) -> None:
        """Cancel a job."""
        self._script(slurm.cancellation(name), what=f"cancel {name}")

    def logs(self, name: str) -> JobLogs:
        """Not supported: the log is a file of the job's folder."""
        return slurm.logs(name)

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
