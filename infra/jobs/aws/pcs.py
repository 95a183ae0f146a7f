"""Slurm of AWS PCS as a job service: scripts of the login node, which Systems Manager runs.

Untested in a real account: requests are checked against the service models of botocore, scripts by a real
Slurm. Submission and reports are scripts of the document `AWS-RunShellScript`, as root of the login node;
jobs are those of the user `trainstack`.
"""

import shlex
import time
from collections.abc import Callable
from typing import Final

from infra.clouds.aws.login import Clients
from infra.errors import Problem, UserError
from infra.jobs import slurm
from infra.jobs.aws.service import SageMakerService, asked
from infra.jobs.login_jobs import LoginJobs
from infra.jobs.service import LostError, ServiceJob
from infra.launchers.runplan import RunPlan
from infra.launchers.shell import CODE_URI
from infra.naming import LOGIN_TAG, TAG_PREFIX

_STACK_TAG: Final = f"{TAG_PREFIX}:stack"
DOCUMENT: Final = "AWS-RunShellScript"
_PATIENCE_S, _PAUSE_S = 120.0, 1.0
_UNDONE: Final = ("Failed", "TimedOut", "Cancelled", "Undeliverable", "Terminated", "InvalidPlatform")


class PcsLoginNode:
    """The login node of a stack, by Systems Manager. See `login_jobs.ScriptRunner`."""

    def __init__(
        self, clients: Clients, stack: str, region: str, *, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._clients, self._stack, self._region, self._pause = clients, stack, region, pause

    def run(self, script: str, *, what: str) -> str:
        """The output of a script on the login node. Raises UserError, LostError."""
        ssm = self._clients("ssm", self._region)
        with asked(what):
            sent = ssm.send_command(
                DocumentName=DOCUMENT,
                Targets=[
                    {"Key": f"tag:{key}", "Values": [value]}
                    for key, value in ((_STACK_TAG, self._stack), LOGIN_TAG)
                ],
                Parameters={"commands": script.splitlines()},
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


class PcsService(LoginJobs):
    """Jobs of the stack's cluster, by its login node, which reaches the bucket itself."""

    def __init__(self, clients: Clients, stack: str, region: str) -> None:
        node = PcsLoginNode(clients, stack, region)
        super().__init__(stack, node, SageMakerService(clients, stack, region), "s3")

    def submit(self, plan: RunPlan) -> None:
        """Submit a job with sbatch. Raises UserError with the output of a script that fails."""
        code = shlex.quote(plan.env[CODE_URI])
        fetch = f"aws s3 cp --recursive --quiet {code} $folder/{slurm.CODE}/\n"
        self._node.run(slurm.submission(plan, fetch), what=f"submit {plan.name}")

    def job(self, name: str) -> ServiceJob | None:
        """The job of that name by squeue and sacct; None if Slurm knows none."""
        quoted = shlex.quote(name)
        take = f'aws s3 cp --quiet "$result" "$(cat {slurm.OWN}/{quoted})/{quoted}/result.json"'
        output = self._node.run(slurm.report(name, take), what=f"ask for {name}")
        return slurm.described(name, self._stack, output)
