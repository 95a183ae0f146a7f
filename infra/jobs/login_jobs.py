"""Jobs of a Slurm system by scripts of its login node, whose input and output carry code, plan and result.

Nodes need no rights to buckets. How a script reaches the login node is the service's.
"""

import base64
import shlex
from collections.abc import Iterator
from typing import Final, Protocol

from infra.jobs import slurm
from infra.jobs.service import CallerIdentity, JobLogs, LostError, Moment, ServiceJob
from infra.launchers import bundle
from infra.launchers.runplan import RunPlan
from infra.launchers.shell import CODE_URI
from infra.launchers.validation import PLAN_FILE

_RESULT: Final = "result"
"""First word of the line with folder and content of a result."""


class ScriptRunner(Protocol):
    """A login node."""

    def run(self, script: str, *, what: str) -> str:
        """The output of a script of bash, run as root.

        Raises UserError where it fails, LostError where the node cannot be reached.
        """
        ...


class ObjectStore(Protocol):
    """The buckets of a stack, with the caller's login."""

    def caller(self) -> CallerIdentity:
        """The identity of the login."""
        ...

    def keep(self, uri: str, content: bytes) -> bool:
        """Write an object unless it exists; return whether it was missing."""
        ...

    def content(self, uri: str) -> bytes:
        """The content of an object."""
        ...


class LoginJobs:
    """Jobs of a stack's Slurm. See `service.JobService`."""

    unseen = 0

    def __init__(self, stack: str, node: ScriptRunner, bucket: ObjectStore, scheme: str) -> None:
        """`scheme`: of the buckets' URIs, such as `gs`."""
        self._stack, self._node, self._bucket, self._scheme = stack, node, bucket, scheme

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
        files = {name: self.content(f"{plan.env[CODE_URI]}{name}") for name in (bundle.NAME, PLAN_FILE)}
        fetch = "".join(
            f"base64 -d > $folder/{slurm.CODE}/{name} <<'TRAINSTACK'\n{_lines(found)}TRAINSTACK\n"
            for name, found in files.items()
        )
        self._node.run(slurm.submission(plan, fetch), what=f"submit {plan.name}")

    def job(self, name: str) -> ServiceJob | None:
        """The job of that name by squeue and sacct, whose result is written to the bucket; None: unknown."""
        own = f"{slurm.OWN}/{shlex.quote(name)}"
        take = f'printf \'{_RESULT} %s %s\\n\' "$(cat {own})" "$(base64 -w0 "$result")"'
        output = self._node.run(slurm.report(name, take), what=f"ask for {name}")
        for line in output.splitlines():
            words = line.split()
            if len(words) == 3 and words[0] == _RESULT:
                # The login node must not choose what the caller's credentials write to.
                if not words[1].startswith(f"{self._scheme}://{self._stack}-"):
                    raise LostError(f"the login node names {words[1]} as the folder of results")
                self.keep(f"{words[1]}/{name}/result.json", base64.b64decode(words[2]))
        return slurm.described(name, self._stack, output)

    def jobs(self, _since: Moment | None = None, *, running: bool = False) -> Iterator[ServiceJob]:  # noqa: ARG002
        """None: an interrupted deployment submits again."""
        yield from ()

    def stop(self, name: str) -> None:
        """Cancel a job."""
        self._node.run(slurm.cancellation(name), what=f"cancel {name}")

    def logs(self, name: str) -> JobLogs:
        """Not supported: the log is a file of the job's folder."""
        return slurm.logs(name)


def _lines(content: bytes) -> str:
    return base64.encodebytes(content).decode()
