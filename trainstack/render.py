"""`smoke render --for NAME`: render a run plan, or the validation itself, as the file that starts it."""

import argparse
import functools
from dataclasses import replace
from pathlib import Path

from infra.launchers import pods, runplan
from infra.launchers.registry import LAUNCHERS, cron_text
from infra.launchers.runplan import RunPlan
from infra.launchers.validation import CODE_FOLDER, RUNS, ValidationFiles, validation
from smoke_training import plan as plans
from smoke_training.cli import files
from smoke_training.reader import DocumentError

NAME = "render"
_WITHOUT_PODS = ("sbatch", "torchrun")
_OF_PODS = ("HOME", "USER", "TERMINATION_MESSAGE_PATH")
HELP = "a run plan as a Job, JobSet, TrainJob, batch script or request of a managed service"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    kinds = "; ".join(f"{name}: {launcher.what}" for name, launcher in LAUNCHERS.items())
    parser.add_argument("--for", dest="kind", required=True, choices=list(LAUNCHERS), help=kinds)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--run", type=Path, help=f"a run plan ({runplan.SCHEMA}, JSON)")
    what.add_argument("--plan", type=Path, help=f"the plan of a validation ({plans.SCHEMA}, JSON)")
    parser.add_argument("--schedule", help="with --for job: a CronJob at these times (cron expression, UTC)")
    parser.add_argument("--out", type=Path, help="output file; default: print it")
    nodes = parser.add_argument_group("with --plan: node properties that the plan does not have")
    nodes.add_argument("--cpu", type=int, default=4, help="cores of a node; default 4")
    nodes.add_argument("--memory-gib", type=int, default=16, help="memory of a node; default 16")
    nodes.add_argument("--efa", type=int, default=0, help="EFA devices of a node; default 0")
    nodes.add_argument("--code", default=CODE_FOLDER, help="folder with smoke_training.zip and plan.json")
    nodes.add_argument("--config-map", help="the ConfigMap that holds these two; default: the folder exists")
    nodes.add_argument("--claim", help="claim for results and checkpoints")
    nodes.add_argument("--name", default="validation", help="name of the run; default validation")
    nodes.add_argument(
        "--work-root", default=RUNS, help=f"with sbatch, torchrun: shared folder for results; default {RUNS}"
    )
    nodes.add_argument("--namespace")
    nodes.add_argument("--queue", help="Kueue LocalQueue")
    nodes.add_argument("--priority", help="Kueue WorkloadPriorityClass")


def main(chosen: argparse.Namespace) -> int:
    """Render; 0."""
    if chosen.schedule and chosen.kind != "job":
        raise DocumentError(["--schedule: only a job can be scheduled; leave it out"])
    parse = runplan.parse if chosen.run else functools.partial(_validation, chosen)
    text = files.read(chosen.run or chosen.plan, lambda text: _rendered(parse(text), chosen))
    files.write(chosen.out, text)
    return 0


def _rendered(plan: RunPlan, chosen: argparse.Namespace) -> str:
    return cron_text(plan, chosen.schedule) if chosen.schedule else LAUNCHERS[chosen.kind].render(plan)


def _validation(chosen: argparse.Namespace, text: str) -> RunPlan:
    plan = plans.parse(text)
    run = RunPlan(
        name=chosen.name,
        image=plan.image,
        command=(),  # filled in by `validation`
        nodes=plan.nodes,
        ranks_per_node=plan.ranks_per_node,
        gpus_per_node=plan.gpus_per_node,
        devices=pods.efa(chosen.efa),
        cpu=chosen.cpu,
        memory_gib=chosen.memory_gib,
        namespace=chosen.namespace,
        queue=chosen.queue,
        priority=chosen.priority,
        timeout_s=int(plan.timeout_s),
        instance_type=plan.instance_type,
    )
    found = validation(
        run, ValidationFiles(code=chosen.code, config_map=chosen.config_map, claim=chosen.claim)
    )
    if chosen.kind in _WITHOUT_PODS:
        found = _on_machines(found, chosen.work_root)
    runplan.check(found)
    return found


def _on_machines(run: RunPlan, work_root: str) -> RunPlan:
    """The validation on machines that users share: no paths and users of pods."""
    env = {name: value for name, value in run.env.items() if name not in _OF_PODS}
    return replace(run, env=env, work_root=work_root)
