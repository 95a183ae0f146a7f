"""`render --for NAME`: a run plan, or the validation itself, as the file that starts it somewhere."""

import argparse
import sys
from pathlib import Path

from smoke_training import plan as plans
from smoke_training.cli.failing import refuse
from smoke_training.launchers import devices, runplan
from smoke_training.launchers.registry import LAUNCHERS, cron_text
from smoke_training.launchers.runplan import RunPlan, RunPlanError
from smoke_training.launchers.validation import CODE_FOLDER, Files, validation
from smoke_training.plan import PlanError

NAME = "render"
HELP = "a run plan as a Job, JobSet, TrainJob, batch script or request of a managed service"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    kinds = "; ".join(f"{name}: {launcher.what}" for name, launcher in LAUNCHERS.items())
    parser.add_argument("--for", dest="kind", required=True, choices=list(LAUNCHERS), help=kinds)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--run", type=Path, help=f"a run plan ({runplan.SCHEMA}, JSON)")
    what.add_argument("--plan", type=Path, help=f"the plan of a validation ({plans.SCHEMA}, JSON)")
    parser.add_argument("--schedule", help="with --for job: a CronJob at these times (cron expression, UTC)")
    parser.add_argument("--out", type=Path, help="where the file goes; default: print it")
    nodes = parser.add_argument_group("with --plan, what it does not say about the nodes")
    nodes.add_argument("--cpu", type=int, default=4, help="cores of a node; default 4")
    nodes.add_argument("--memory-gib", type=int, default=16, help="memory of a node; default 16")
    nodes.add_argument("--efa", type=int, default=0, help="EFA devices of a node; default 0")
    nodes.add_argument("--code", default=CODE_FOLDER, help="folder with smoke_training.zip and plan.json")
    nodes.add_argument("--config-map", help="the ConfigMap that holds these two; default: they are there")
    nodes.add_argument("--claim", help="claim for results and checkpoints")
    nodes.add_argument("--name", default="validation", help="name of the run; default validation")
    nodes.add_argument("--namespace")
    nodes.add_argument("--queue", help="Kueue LocalQueue")
    nodes.add_argument("--priority", help="Kueue WorkloadPriorityClass")


def main(chosen: argparse.Namespace) -> int:
    """Render; 0, or 3 when the plan cannot be run there."""
    source: Path = chosen.run or chosen.plan
    if chosen.schedule and chosen.kind != "job":
        return refuse("there is no such file", ["--schedule: only a job can be scheduled; leave it out"])
    try:
        plan = runplan.parse(source.read_text()) if chosen.run else _validation(chosen)
        text = cron_text(plan, chosen.schedule) if chosen.schedule else LAUNCHERS[chosen.kind].render(plan)
        if chosen.out is None:
            sys.stdout.write(text)
        else:
            chosen.out.write_text(text)
    except (PlanError, RunPlanError) as error:
        return refuse(f"{source}: {len(error.problems)} problems in the plan", error.problems)
    except OSError as error:
        return refuse("the plan cannot be rendered", [str(error)])
    return 0


def _validation(chosen: argparse.Namespace) -> RunPlan:
    plan = plans.parse(chosen.plan.read_text())
    run = RunPlan(
        name=chosen.name,
        image=plan.image,
        command=(),  # filled in by `validation`
        nodes=plan.nodes,
        ranks_per_node=plan.ranks_per_node,
        gpus_per_node=plan.gpus_per_node,
        devices=devices.efa(chosen.efa),
        cpu=chosen.cpu,
        memory_gib=chosen.memory_gib,
        namespace=chosen.namespace,
        queue=chosen.queue,
        priority=chosen.priority,
        timeout_s=int(plan.timeout_s),
        instance_type=plan.instance_type,
    )
    files = Files(code=chosen.code, config_map=chosen.config_map, claim=chosen.claim)
    found = validation(run, files)
    runplan.check(found)
    return found
