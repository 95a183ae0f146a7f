"""A job of a managed training service on one node: prepare, run the script, record its end."""

import contextlib
import importlib
import shutil
import signal
import site
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from agents.managed_job import command, machine, services, settings
from agents.managed_job.document import FAILED, FINISHED, KILLED, NAME, JobRecord
from agents.managed_job.failure_reason import LIMIT, reason
from agents.managed_job.folders import Folders
from agents.managed_job.ledger import NAME as LEDGER
from agents.managed_job.ledger import AttemptLedger
from agents.managed_job.mlflow_run import MlflowRun
from agents.managed_job.supervisor import BY_SIGNAL, ProgramExit, Supervisor
from smoke_training import files
from smoke_training.reader import DocumentError
from smoke_training.runtime import facts, host, output

REQUIREMENTS = "requirements.txt"
ALIVE_S = 60.0  # interval of heartbeats in the record: a kill loses at most this much of the duration
NAME_S = 600.0  # limit for the name resolution of the first node
OFFLINE = "mlflow.db"


def run(environment: Mapping[str, str], folders: Folders, folder: Path) -> int:
    """Run this node's part of the job in `folder`, which has the code; return the script's exit code.

    DocumentError for an environment without a job; it becomes the job's failure reason, too.
    """
    environment = dict(environment)  # a copy: changes of this process do not reach the script
    with Supervisor() as supervisor, services.copies_of(environment, folders, say) as copies:
        try:
            copies.restore()
            place = services.find_node(environment, folders)
            declared = settings.read(environment)
            _check(declared.script, folder)
        except DocumentError as error:
            _failed(folders, "\n".join(error.problems))
            raise
        record = JobRecord(
            settings=declared,
            place=place,
            machine=machine.facts(declared.image),
            ledger=_ledger(folders),
            parameters=settings.parameters(declared.arguments),
        )
        return _Job(environment, folders, folder, record, supervisor).run()


def say(text: str) -> None:
    """Write one line of this program's own log."""
    output.say(f"trainstack: {text}")


class _Job:
    def __init__(
        self,
        environment: Mapping[str, str],
        folders: Folders,
        folder: Path,
        record: JobRecord,
        supervisor: Supervisor,
    ) -> None:
        self._environment, self._folders, self._folder = environment, folders, folder
        self._record, self._supervisor = record, supervisor
        self._place, self._settings, self._ledger = record.place, record.settings, record.ledger
        self._what = self._settings.script  # subject of a failure message
        self._alive_at = self._began = time.monotonic()
        self._stamp = time.time()  # start time; later times add a monotonic clock to it
        self._kills = host.oom_kills()
        self._tracked = MlflowRun(environment, say)

    def run(self) -> int:
        folders = self._folders
        for path in (folders.checkpoints, folders.model, folders.output, folders.scratch):
            path.mkdir(parents=True, exist_ok=True)
        if self._place.index == 0 or not folders.shared:
            folders.failure.unlink(missing_ok=True)  # from an earlier attempt
        where = f"node {self._place.index + 1} of {self._place.nodes}"
        say(f"{where}, {self._record.machine_type or 'any machine'}: {self._settings.script}")
        ended = self._requirements()
        if self._place.index == 0:
            self._begin()
        if ended is None:
            ended = self._script()
        self._end(ended)
        return ended.code

    def _requirements(self) -> ProgramExit | None:
        if not (self._folder / REQUIREMENTS).is_file():
            return None
        say(f"installing {REQUIREMENTS}")
        pip = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "-r", REQUIREMENTS]
        ended = self._supervisor.run([sys.executable, *pip], self._environment, self._folder)
        if ended.code != 0:
            self._what = f"pip install -r {REQUIREMENTS}"
            return ended
        with contextlib.suppress(AttributeError):  # pip may have just created this folder
            site.addsitedir(site.getusersitepackages())
        importlib.invalidate_caches()
        return None

    def _now(self) -> float:
        return self._stamp + time.monotonic() - self._began

    def _begin(self) -> None:
        """Record the run in the ledger, in MLflow and in a file, before the script starts."""
        if self._settings.missing:
            say(f"this run is marked as incomplete: it has no {', no '.join(self._settings.missing)}")
        self._noted(lambda: self._ledger.begin(self._stamp))
        if self._ledger.interruptions:
            say(f"this run resumes after {self._ledger.interruptions} interruptions")
        name = self._settings.run or self._place.job or ""
        self._tracked.open(self._ledger.mlflow_run_id, name, self._record.tags(), self._record.params())
        self._write()

    def _script(self) -> ProgramExit:
        if self._place.nodes > 1:
            self._meet()
        tracking = {}
        if self._place.index == 0:
            tracking = self._tracked.variables(f"sqlite:///{self._folders.scratch / OFFLINE}", self._folder)
        if command.is_shell(self._settings):
            tracking |= command.rendezvous(self._settings, self._place)
        code = (facts.code_location(), self._folder)
        variables = command.environment(self._environment, self._place, self._folders, code, tracking)
        line = command.command(self._settings, self._place)
        return self._supervisor.run(line, variables, self._folder, self._tick)

    def _meet(self) -> None:
        """Wait until the first node's name resolves; it may be registered after the containers start."""
        deadline = time.monotonic() + NAME_S
        while host.resolve(self._place.first) is None and self._supervisor.stopped is None:
            if time.monotonic() > deadline:
                say(f"{self._place.first} still has no address after {NAME_S:.0f} s")
                return
            time.sleep(services.POLL_S)

    def _tick(self) -> None:
        if self._place.index or time.monotonic() < self._alive_at + ALIVE_S:
            return
        self._alive_at = time.monotonic()
        self._noted(lambda: self._ledger.see(self._now()))
        self._tracked.refresh()

    def _end(self, ended: ProgramExit) -> None:
        stopped = self._supervisor.stopped
        record = self._record
        record.ended, record.exit_code = self._now(), ended.code
        record.status = KILLED if stopped else FAILED if ended.code else FINISHED
        if ended.code != 0:
            short = self._out_of_memory(ended)
            record.reason = reason(self._what, ended, stopped=stopped, out_of_memory=short)
            _failed(self._folders, self._of_node(record.reason))
        elif stopped:
            record.reason = f"stopped by {stopped.name}"
        if self._place.index:
            return
        self._noted(lambda: self._ledger.see(self._now(), record.status))
        self._tracked.close(record.status, record.tags(), record.metrics())
        self._write()
        self._noted(self._keep_offline)
        say(f"{record.status} after {self._ledger.seconds:.0f} s, exit code {ended.code}")

    def _keep_offline(self) -> None:
        """Copy what was recorded without a tracking server to the output."""
        offline = self._folders.scratch / OFFLINE
        if offline.exists() and self._folders.scratch != self._folders.output:
            shutil.copyfile(offline, self._folders.output / OFFLINE)

    def _of_node(self, text: str) -> str:
        """Prefix a reason with its node, where there are several."""
        return text if self._place.nodes == 1 else f"node {self._place.index}: {text}"[:LIMIT]

    def _out_of_memory(self, ended: ProgramExit) -> bool:
        """Report whether the kernel's OOM killer ended processes; only for a killed script."""
        kills = host.oom_kills()
        killed = signal.SIGKILL in (ended.killed_by, ended.code - BY_SIGNAL) or ended.code == 1
        return killed and kills is not None and self._kills is not None and kills > self._kills

    def _write(self) -> None:
        """Write `run.json`, and MLflow's id of the run into the ledger, where the next attempt finds it."""
        if self._tracked.run_id is not None and self._tracked.run_id != self._ledger.mlflow_run_id:
            self._ledger.mlflow_run_id = self._tracked.run_id
            self._noted(lambda: self._ledger.see(self._now(), self._ledger.attempts[-1].status))
        document = self._record.document(self._tracked.run_id, self._tracked.problems)
        self._noted(lambda: files.write_json(self._folders.output / NAME, document))

    def _noted(self, write: Callable[[], None]) -> None:
        """Write a file; a full disk must not stop the training."""
        try:
            write()
        except OSError as error:
            say(f"not written: {error}")


def _check(script: str, folder: Path) -> None:
    """DocumentError where the script is not among the files that were packed."""
    if not (folder / script).is_file():
        there = ", ".join(sorted(path.name for path in folder.iterdir())[:20]) or "nothing"
        rule = f"must be a file of the folder, which has {there}"
        raise DocumentError([f"TRAINSTACK_SCRIPT: got {script!r}; {rule}"])


def _ledger(folders: Folders) -> AttemptLedger:
    try:
        return AttemptLedger.read(folders.checkpoints)
    except ValueError as error:
        say(f"the record of earlier attempts cannot be read: {error}")
        return AttemptLedger(folders.checkpoints / LEDGER)


def _failed(folders: Folders, text: str) -> None:
    try:
        folders.failure.parent.mkdir(parents=True, exist_ok=True)
        folders.failure.write_text(text[:LIMIT])
    except OSError as error:
        say(f"not written: {error}")
