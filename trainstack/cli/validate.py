"""`trainstack validate`: validate every node of deployed pools in turns."""

import json
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infra.errors import Problem, UserError
from infra.exit_codes import ExitCode
from infra.gate import POOL_LABEL
from trainstack import node_turns
from trainstack.cli.access import deployed, kubeconfig_file, kubectl
from trainstack.cli.output import Format, FormatOption, print_json
from trainstack.cli.stack import Stack

if TYPE_CHECKING:
    from infra.outputs.cluster import StackOutputs, ValidationRun

LOOK_S = 2.0
_JSON = "--output=json"
_FIX = "Log in to the cloud as an administrator of the stack."

Pool = Annotated[
    str,
    typer.Option(
        "--pool", "-p", help="A pool of the stack that has scheduled validations; default: all of them."
    ),
]
Ask = Callable[..., str]
Patience = Annotated[
    int, typer.Option("--patience", help="Seconds to wait until a group of nodes is idle and starts.", min=1)
]


@dataclass(frozen=True)
class PoolResult:
    """Result of the validation of a pool."""

    pool: str
    groups: list[dict[str, Any]]
    """Nodes that ran together, with `passed` (null: not idle in time) and the result as text."""
    suspect: list[str]
    """Nodes that failed in every group."""
    not_validated: list[str]

    @property
    def passed(self) -> bool:
        """Return whether every node passed."""
        return not self.not_validated and all(one["passed"] is not False for one in self.groups)


def validate(
    stack: Stack = "", *, pool: Pool = "", patience: Patience = 600, form: FormatOption = Format.TEXT
) -> None:
    """Validate every running node of each pool in turns, in overlapping groups of idle nodes."""
    exported, _ = deployed(stack, rehearse=False)
    runs = _scheduled(exported, pool)
    as_json = form is Format.JSON
    with kubeconfig_file(exported) as config:

        def ask(arguments: Sequence[str], given: str | None = None) -> str:
            done = kubectl(config, arguments, capture=True, given=given)
            if done.returncode:
                rule = done.stderr.strip()
                raise UserError([Problem("kubectl", arguments[1], rule, _FIX, code="kubectl-failed")])
            return done.stdout

        results = [in_turns(ask, run, name, patience, to_stderr=as_json) for name, run in runs.items()]
    passed = all(one.passed for one in results)
    if as_json:
        print_json("trainstack.validate/1", {"stack": stack, "passed": passed, "pools": results})
    if not passed:
        raise typer.Exit(ExitCode.FAILED)


def _scheduled(exported: "StackOutputs", pool: str) -> "dict[str, ValidationRun]":
    """The scheduled run of the pool, without one of every pool. Raises UserError where there is none."""
    runs = {str(run.pool): run for run in exported.smoke if run.schedule}
    if not runs or (pool and pool not in runs):
        names = ", ".join(sorted(str(name) for name in runs)) or "none"
        fix = f"Pools with a schedule: {names}. Others need `smoke.pools`, `smoke.schedule` and an `up`."
        rule = "is not validated on a schedule" if pool else "no pool is validated on a schedule"
        raise UserError([Problem("--pool", pool or None, rule, fix, code="pool-without-validation")])
    return {pool: runs[pool]} if pool else runs


def in_turns(
    ask: Ask, run: "ValidationRun", pool: str, patience_s: float, *, to_stderr: bool = False
) -> PoolResult:
    """Validate one group after the other and print each result.

    `ask` runs kubectl with arguments and an input, and returns its output.
    """
    inside = f"--namespace={run.namespace}"
    cron_job = json.loads(ask([inside, "get", "cronjob", str(run.schedule), _JSON]))
    size = int(cron_job["spec"]["jobTemplate"]["spec"]["completions"])
    found = json.loads(ask(["get", "nodes", f"--selector={POOL_LABEL}={pool}", _JSON]))["items"]
    nodes = sorted(node["metadata"]["labels"][node_turns.HOSTNAME] for node in found)
    if len(nodes) < size:
        fix = "Nodes start when jobs need them: validate while some run, or raise min_nodes."
        rule = f"{len(nodes)} of its nodes run, {size} are needed"
        raise UserError([Problem("--pool", pool, rule, fix, code="too-few-nodes")])
    passed: dict[node_turns.Group, bool] = {}
    groups: list[dict[str, Any]] = []
    for group in node_turns.groups(nodes, size):
        well, text = _turn(ask, inside, cron_job, group, patience_s)
        typer.echo(f"{' + '.join(group)}: {text}", err=to_stderr)
        groups.append({"nodes": [*group], "passed": well, "result": text})
        if well is not None:
            passed[group] = well
    busy = [node for node in nodes if not any(node in group for group in passed)]
    suspect = [*node_turns.suspects(passed)]
    for title, names in (("suspect", suspect), ("not validated", busy)):
        if names:
            typer.echo(f"{title}: {', '.join(names)}", err=to_stderr)
    return PoolResult(pool, groups, suspect, busy)


def _turn(
    ask: Ask, inside: str, cron_job: Any, group: node_turns.Group, patience_s: float
) -> tuple[bool | None, str]:
    """Return whether a run on these nodes completed, and its result; None when they were not idle in time."""
    name = f"{cron_job['metadata']['name']}-{uuid.uuid4().hex[:6]}"
    ask([inside, "create", "--filename=-"], json.dumps(node_turns.job(cron_job, name, group)))
    until = time.monotonic() + patience_s
    while True:
        seen = json.loads(ask([inside, "get", "job", name, _JSON]))
        well = node_turns.ended(seen)
        if well is not None:
            label = f"--selector=batch.kubernetes.io/job-name={name}"
            pods = json.loads(ask([inside, "get", "pods", label, _JSON]))["items"]
            return well, node_turns.result_text(pods)
        if not node_turns.begun(seen) and time.monotonic() > until:
            ask([inside, "delete", "job", name])
            return None, f"not idle within {patience_s:g} s"
        time.sleep(LOOK_S)
