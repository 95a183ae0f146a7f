"""The life of the shipped environment in the emulated clouds, from the first preview to the last process.

Each step continues the previous one. The results of each step are kept, so that tests can check them in any
order.
"""

import functools
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
import psutil
from mlflow.entities import Run

from infra.stackspec.document import read
from infra.stackspec.load import CONFIG
from rehearsal.client import Rehearsal
from rehearsal.core import faults
from tests.rehearsal.frugal import FRUGAL

ROOT = Path(__file__).resolve().parents[3]
STACK = "dev-aws"
NOTHING = {"aws": 0, "gcp": 0, "kubernetes": 0}
Done = subprocess.CompletedProcess[str]
UP = ("up", "--skip-preview", "--yes", "--non-interactive")
UNCHANGED = (*UP, "--expect-no-changes")
SLOW_RANK = ("--fault", "smoke:slow-rank=1")
_TRIES = 3
# A large stack with its validations one after another takes ten minutes on two processors.
_LIMIT_S = 1200


@dataclass(frozen=True)
class Seen:
    """One step: output of the command, and the state after it."""

    done: Done
    resources: Mapping[str, int]
    results: Mapping[Path, int]
    """The validation's results, with the time of their last change in ns."""
    processes: list[str]

    @property
    def output(self) -> str:
        return self.done.stdout + self.done.stderr


@dataclass(frozen=True)
class Life:
    """One life of a stack."""

    failed: Seen
    """The first `up`, with a rank that is slow."""
    closed: str
    """Output of `status` at that time."""
    passed: Seen
    opened: str
    """Output of `status` at that time."""
    runs: list[Run]
    """The runs of the tracking server at that time, oldest first."""
    result: Mapping[str, Any]
    """The newest result at that time."""
    unchanged: Seen
    """Plain `pulumi up --expect-no-changes`."""
    audited: Done
    """Findings of the policies for the exported state."""
    outputs: Mapping[str, Any]
    password: str
    """Password of the tracking server's first user."""
    written: Mapping[Path, str]
    """All states and logs before the end."""
    destroyed: Seen


def home(folder: Path) -> Iterator[Path]:
    """A rehearsal home below a new folder, with the cache of this checkout; stopped at the end."""
    cache = ROOT / ".trainstack" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    (folder / "cache").symlink_to(cache)
    try:
        yield folder / "rehearsal"
    finally:  # also after a failure
        Rehearsal(folder / "rehearsal").stop()


def trainstack(home: Path, *arguments: str) -> Done:
    command = [str(ROOT / ".venv" / "bin" / "trainstack"), *arguments]
    return subprocess.run(
        command,
        env=environment(home) | FRUGAL,
        check=False,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        cwd=ROOT,
    )


def native(home: Path, *arguments: str, stack: str = STACK) -> Done:
    """Plain `pulumi`, in the environment that `rehearse env` prints."""
    script = f"{_exports(home, stack)}\npulumi {' '.join(arguments)}"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PULUMI_")} | FRUGAL
    return subprocess.run(
        ["/bin/sh", "-ec", script], env=environment, check=False, capture_output=True, text=True, cwd=ROOT
    )


@functools.cache
def _exports(home: Path, stack: str) -> str:
    return trainstack(home, "rehearse", "env", "-s", stack).stdout


def processes(home: Path) -> list[str]:
    """Processes of this rehearsal."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        command = " ".join(process.info["cmdline"] or [])
        variables = process.info["environ"] or {}
        if str(home) in command or variables.get("TRAINSTACK_REHEARSAL_HOME") == str(home):
            found.append(command)
    return found


def live(home: Path) -> Life:
    """A failed and a passed deployment, one without a change, and the end."""
    failed, closed = decided(home, *SLOW_RANK)
    passed, opened = decided(home)
    # Without a passed gate there is nothing further to check.
    assert passed.done.returncode == 0, passed.output
    runs, newest = _runs(home), max(passed.results)
    result = json.loads(newest.read_text())
    unchanged = seen(home, native(home, *UNCHANGED))
    policed = audited(home)
    outputs = json.loads(native(home, "stack", "output", "--json").stdout)
    secret = Rehearsal(home).secret(outputs["trainstack"]["mlflow_admin_secret"])
    places = [*home.glob("state/**/*.json"), *home.glob("logs/**/*.log"), home / "daemon.log"]
    written = {path: path.read_text(errors="replace") for path in places}
    ended = native(home, "destroy", "--yes", "--non-interactive")
    Rehearsal(home).wait_until_idle()
    return Life(
        failed=failed,
        closed=closed,
        passed=passed,
        opened=opened,
        runs=runs,
        result=result,
        unchanged=unchanged,
        audited=policed,
        outputs=outputs,
        password=(secret or {}).get("password", ""),
        written=written,
        destroyed=seen(home, ended),
    )


def decided(home: Path, *more: str, stack: str = STACK) -> tuple[Seen, str]:
    """An `up` whose validation is decided, and the `status` after it: other load can leave one undecided."""
    for _ in range(_TRIES):
        found = seen(home, do(home, "up", "--yes", *more, stack=stack))
        status = do(home, "status", stack=stack).stdout
        if found.done.returncode == 0 or ": FAIL " in status or "INCONCLUSIVE" not in found.output:
            break
    return found, status


def in_a_new_organization(home: Path, *allowed: str) -> None:
    """Let the emulated project be of an organization with Google's security baseline.

    `allowed` are members that the organization names in `allowedMemberSubjects`. It lasts until a command of
    trainstack sets the faults of its own.
    """
    known = faults.parse([], ROOT / "rehearsal/scenarios/new-organization.yaml")
    organization = known.organization.model_copy(update={"allowed_members": allowed})
    baseline = known.model_copy(update={"organization": organization})
    Rehearsal(home).set_faults(baseline.model_dump(mode="json", exclude_none=True))


def beside_others(home: Path, stack: str = STACK, change: Callable[[Any], object] | None = None) -> str:
    """The path of a shipped stack file, changed for a test that has no machine of its own.

    The validation is the short one, and speed that a busy machine leaves undecided opens the gate, too;
    the tracking server has one process. `change` gets the file's settings and may change more.
    """
    source = f"Pulumi.{stack}.yaml"
    content = json.loads(json.dumps(read(CONFIG / source, source)))
    spec = content["config"]["trainstack:spec"]
    spec["smoke"].update({"accept": ["PASS", "INCONCLUSIVE"], "depth": "quick"})
    if content["config"]["trainstack:profile"] == "small":
        # Parts of other profiles, which policies judge, too. Nothing starts by schedule.
        spec["smoke"]["schedule"] = "0 5 * * 1"
    if "tracking" in spec:  # elsewhere the cloud runs it
        spec["tracking"].update({"replicas": 1, "workers": 1})
    if change:
        change(content["config"])
    changed = home.parent / f"{change.__name__ if change else 'beside_others'}.yaml"
    changed.write_text(json.dumps(content))
    return str(changed)


def environment(home: Path) -> dict[str, str]:
    """The environment of a command for a home."""
    return {**os.environ, "TRAINSTACK_REHEARSAL_HOME": str(home), "COLUMNS": "200"}


def do(home: Path, command: str, *more: str, stack: str = STACK) -> Done:
    return trainstack(home, command, "-s", stack, "--rehearse", *more)


def seen(home: Path, done: Done) -> Seen:
    """The state after a command."""
    results = {path: path.stat().st_mtime_ns for path in home.glob("*/*checkpoints*/smoke/*/result.json")}
    return Seen(done, Rehearsal(home).status()["resources"], results, processes(home))


def audited(home: Path, stack: str = STACK) -> Done:
    """Audit the output of plain `pulumi stack export`."""
    export = home.parent / "export.json"
    done = native(home, "stack", "export", "--stack", stack, "--file", str(export), stack=stack)
    judged = "--config", str(ROOT / "stacks" / "audit.yaml"), "--environment", stack, "--format", "json"
    return trainstack(home, "audit", "--state", str(export), *judged) if export.exists() else done


def events_under_pack(home: Path, stack: str = STACK, *more: str) -> str:
    """The engine's events, one a line, of a preview under the policy pack, configured as the audit is."""
    config = home.parent / "pack.json"
    asked = {"config": str(ROOT / "stacks" / "audit.yaml"), "environment": stack}
    config.write_text(json.dumps({"audit": asked}))
    command = (
        "version > /dev/null\nPULUMI_ENABLE_STREAMING_JSON_PREVIEW=true pulumi preview", "--stack", stack,
        "--json", "--show-sames", "--policy-pack", "policies", "--policy-pack-config", str(config), *more,
    )  # fmt: skip
    done = native(home, *command, stack=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _runs(home: Path) -> list[Run]:
    lines = trainstack(home, "rehearse", "login", "-s", STACK).stdout.split("\n")
    login = dict(line.split(maxsplit=1) for line in lines if line)
    os.environ["MLFLOW_TRACKING_USERNAME"] = login["username"]
    os.environ["MLFLOW_TRACKING_PASSWORD"] = login["password"]
    client = mlflow.MlflowClient(login["url"])
    experiment = client.get_experiment_by_name("smoke-validation")
    assert experiment
    return list(client.search_runs([experiment.experiment_id], order_by=["attributes.start_time ASC"]))
