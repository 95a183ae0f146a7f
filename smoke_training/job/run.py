"""A job of a managed training service on one node: prepare, run the script, record how it ended."""

import contextlib
import importlib
import shutil
import signal
import site
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from smoke_training.job import command, machine, settings
from smoke_training.job import place as places
from smoke_training.job.document import FAILED, FINISHED, KILLED, NAME, JobRun
from smoke_training.job.folders import Folders
from smoke_training.job.ledger import NAME as LEDGER
from smoke_training.job.ledger import Ledger
from smoke_training.job.reason import LIMIT, reason
from smoke_training.job.supervisor import BY_SIGNAL, Ended, Supervisor
from smoke_training.job.tracked import Tracked
from smoke_training.reader import DocumentError
from smoke_training.runtime import facts, files, host, output

REQUIREMENTS = "requirements.txt"
ALIVE_S = 60.0  # how often a run writes down that it is alive: what an outright kill may cost of its duration
NAME_S = 600.0  # that the name of the first node may take to have an address
OFFLINE = "mlflow.db"


def run(environment: Mapping[str, str], folders: Folders, folder: Path) -> int:
    """Run this node's part of the job in `folder`, which has the code; the exit code of the script.

    DocumentError for an environment that tells no job; it is the job's reason of failure, too.
    """
    environment = dict(environment)  # what this process changes for itself is not the script's
    with Supervisor() as supervisor:
        try:
            place = places.find(environment, folders)
            told = settings.read(environment)
            _check(told.script, folder)
        except DocumentError as error:
            _failed(folders, "\n".join(error.problems))
            raise
        record = JobRun(
            settings=told,
            place=place,
            machine=machine.facts(told.image),
            ledger=_ledger(folders),
            parameters=settings.parameters(told.arguments),
        )
        return _Job(environment, folders, folder, record, supervisor).run()


def say(text: str) -> None:
    """One line of the log that is ours and not the script's."""
    output.say(f"trainstack: {text}")


class _Job:
    def __init__(
        self,
        environment: Mapping[str, str],
        folders: Folders,
        folder: Path,
        record: JobRun,
        supervisor: Supervisor,
    ) -> None:
        self._environment, self._folders, self._folder = environment, folders, folder
        self._record, self._supervisor = record, supervisor
        self._place, self._told, self._ledger = record.place, record.settings, record.ledger
        self._what = self._told.script  # what a failure is about
        self._alive_at = self._began = time.monotonic()
        self._stamp = (
            time.time()
        )  # of the beginning; what follows is counted from it by a clock that never jumps
        self._kills = host.oom_kills()
        self._tracked = Tracked(environment, say)

    def run(self) -> int:
        folders = self._folders
        for path in (folders.checkpoints, folders.model, folders.output, folders.scratch):
            path.mkdir(parents=True, exist_ok=True)
        if self._place.index == 0 or not folders.shared:
            folders.failure.unlink(missing_ok=True)  # of an earlier attempt
        where = f"node {self._place.index + 1} of {self._place.nodes}"
        say(f"{where}, {self._record.machine_type or 'any machine'}: {self._told.script}")
        ended = self._requirements()
        if self._place.index == 0:
            self._begin()
        if ended is None:
            ended = self._script()
        self._end(ended)
        return ended.code

    def _requirements(self) -> Ended | None:
        """Install what the code asks for; how that ended where it went wrong."""
        if not (self._folder / REQUIREMENTS).is_file():
            return None
        say(f"installing {REQUIREMENTS}")
        pip = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "-r", REQUIREMENTS]
        ended = self._supervisor.run([sys.executable, *pip], self._environment, self._folder)
        if ended.code != 0:
            self._what = f"pip install -r {REQUIREMENTS}"
            return ended
        with contextlib.suppress(AttributeError):  # pip may just have made this folder
            site.addsitedir(site.getusersitepackages())
        importlib.invalidate_caches()
        return None

    def _now(self) -> float:
        """Seconds since 1970, of this attempt."""
        return self._stamp + time.monotonic() - self._began

    def _begin(self) -> None:
        """The run is in the ledger, in MLflow and in a file before the script begins."""
        if self._told.missing:
            say(f"this run is marked as incomplete: it has no {', no '.join(self._told.missing)}")
        self._noted(lambda: self._ledger.begin(self._stamp))
        if self._ledger.interruptions:
            say(f"this run goes on after {self._ledger.interruptions} interruptions")
        name = self._told.run or self._place.job or ""
        self._tracked.open(self._ledger.mlflow_run_id, name, self._record.tags(), self._record.params())
        self._write()

    def _script(self) -> Ended:
        """Run the script once its first node can be found."""
        if self._place.nodes > 1:
            self._meet()
        tracking = {}
        if self._place.index == 0:
            tracking = self._tracked.variables(f"sqlite:///{self._folders.scratch / OFFLINE}")
        code = facts.code_location()
        variables = command.environment(self._environment, self._place, self._folders, code, tracking)
        line = command.command(self._told, self._place)
        return self._supervisor.run(line, variables, self._folder, self._tick)

    def _meet(self) -> None:
        """Wait for the name of the first node; names of a job's nodes may come after its containers."""
        deadline = time.monotonic() + NAME_S
        while host.resolve(self._place.first) is None and self._supervisor.stopped is None:
            if time.monotonic() > deadline:
                say(f"{self._place.first} still has no address after {NAME_S:.0f} s")
                return
            time.sleep(places.POLL_S)

    def _tick(self) -> None:
        if self._place.index or time.monotonic() < self._alive_at + ALIVE_S:
            return
        self._alive_at = self._began = time.monotonic()
        self._stamp = (
            time.time()
        )  # of the beginning; what follows is counted from it by a clock that never jumps
        self._noted(lambda: self._ledger.see(self._now()))
        self._tracked.refresh()

    def _end(self, ended: Ended) -> None:
        """Say why it failed, then end the record."""
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
        """What was recorded without a tracking server goes where it is kept."""
        offline = self._folders.scratch / OFFLINE
        if offline.exists() and self._folders.scratch != self._folders.output:
            shutil.copyfile(offline, self._folders.output / OFFLINE)

    def _of_node(self, text: str) -> str:
        """A reason that says which node it is of, where there are several."""
        return text if self._place.nodes == 1 else f"node {self._place.index}: {text}"[:LIMIT]

    def _out_of_memory(self, ended: Ended) -> bool:
        """Whether the kernel has ended processes here; only a script that was killed is told so."""
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
        """Do what writes a file; a full disk must not cost the training."""
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


def _ledger(folders: Folders) -> Ledger:
    try:
        return Ledger.read(folders.checkpoints)
    except ValueError as error:
        say(f"the record of earlier attempts cannot be read: {error}")
        return Ledger(folders.checkpoints / LEDGER)


def _failed(folders: Folders, text: str) -> None:
    """Tell the service why the job failed."""
    try:
        folders.failure.parent.mkdir(parents=True, exist_ok=True)
        folders.failure.write_text(text[:LIMIT])
    except OSError as error:
        say(f"not written: {error}")
