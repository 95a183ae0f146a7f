"""The run plan of a job, which launchers render as the request of its service (pure)."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from infra.errors import Problem, UserError
from infra.jobs.limits import MOST_OF_A_SEARCH
from infra.jobs.options import RunOrder
from infra.jobs.packing.pack import CodePack
from infra.jobs.service import Moment
from infra.jobs.service_part import PartOf
from infra.launchers import bundle, managed
from infra.launchers.aws import trial
from infra.launchers.runplan import PER_NODE, RunPlan
from infra.naming import TAG_PREFIX, lasting_tags, sanitize

# TrainingJobName of SageMaker's API; Vertex AI takes longer names.
_MOST_OF_A_NAME = 63
_STAMP = "%y%m%d-%H%M%S"
# Of `<stack>-<person>`, by which a person's role limits access to their jobs; six are left for the folder.
_MOST_OF_A_HEAD = 42
_PREFIX = "TRAINSTACK_"


def run_name(order: RunOrder, now: Moment) -> str:
    """`<stack>-<person>-<folder>-<yymmdd-hhmmss>` in UTC, at most 63 letters, digits and dashes."""
    if order.options.tune is not None:
        return _search_name(order, now)
    stamp = now.strftime(_STAMP)
    head = sanitize(f"{order.outputs.stack}-{order.person.name}", max_length=_MOST_OF_A_HEAD)
    left = _MOST_OF_A_NAME - len(head) - len(stamp) - 2
    return f"{head}-{_of_folder(order, left)}-{stamp}"


def _search_name(order: RunOrder, now: Moment) -> str:
    """`<stack>-<person>-<second in hex>`, at most 32 characters: names of trials begin with it."""
    stamp = f"{int(now.timestamp()):x}"
    most = MOST_OF_A_SEARCH - len(stamp) - 1
    return f"{sanitize(f'{order.outputs.stack}-{order.person.name}', max_length=most)}-{stamp}"


def run_plan(
    order: RunOrder,
    pack: CodePack,
    code_uri: str,
    now: Moment,
    *,
    part_of: PartOf,
    checkpoint_uri: str | None = None,
) -> RunPlan:
    """The plan of a run whose code lies below `code_uri`. Raises UserError for values that are too long.

    `part_of` is `RunService.part`. The run continues from the checkpoints at `checkpoint_uri`; None: it
    begins without, in a folder of its own.
    """
    name, outputs = run_name(order, now), order.outputs
    part = part_of(order, name, code_uri, checkpoint_uri)
    environment = {**_environment(order, pack, name, part.gpus), **part.environment}
    if problems := list(_too_long(environment, part.value_length)):
        raise UserError(problems)
    return RunPlan(
        name=f"run-{_of_folder(order, 36)}",
        image=outputs.image,
        command=part.command,
        command_per=PER_NODE,
        nodes=order.nodes,
        gpus_per_node=part.gpus,
        cpu=part.cpu,
        memory_gib=part.memory_gib,
        env=environment,
        labels=_tags(order, name),
        timeout_s=round(order.max_hours * 3600),
        startup_timeout_s=0,  # the service counts only run time
        instance_type=part.machine,
        sagemaker=part.sagemaker,
        vertex=part.vertex,
    )


def _environment(order: RunOrder, pack: CodePack, name: str, gpus: int) -> dict[str, str]:
    """Variables for the wrapper in the job (agents/managed_job/), without unknown values."""
    usd, machine = order.machine.usd_per_hour, order.machine.machine
    values = {
        "STACK": order.outputs.stack,
        "RUN": name,
        "OWNER": order.person.name,
        "PERSON": order.person.name,
        "TEAM": order.person.team,
        "DATASET": order.dataset,
        "TASK": order.options.task,
        "CODE_VERSION": pack.version,
        "IMAGE": order.outputs.image,
        "MACHINE": machine,
        "SCRIPT": pack.script,
        "ARGUMENTS": json.dumps(order.options.arguments, ensure_ascii=False),
        "GPUS": str(gpus),
        **({"MODULE": pack.module} if pack.module else {}),
        # Of all machines together.
        **({} if usd is None else {"COST_PER_HOUR": f"{usd * order.nodes:g}"}),
    }
    program = Path(trial.__file__)
    others = {trial.NAME: hashlib.sha256(program.read_bytes()).hexdigest()} if order.options.tune else {}
    return {
        **{f"{_PREFIX}{key}": value for key, value in values.items()},
        managed.CHECK: managed.check(pack.sha256, bundle.of_jobs().sha256, others),
        "MLFLOW_TRACKING_URI": order.outputs.tracking_uri,
        "MLFLOW_EXPERIMENT_NAME": order.person.team,
    }


def _tags(order: RunOrder, name: str) -> dict[str, str]:
    outputs = order.outputs
    return {
        **lasting_tags(outputs.stack),
        f"{TAG_PREFIX}:profile": outputs.profile,
        "owner": outputs.owner,
        "cost-center": outputs.cost_center,
        f"{TAG_PREFIX}:person": order.person.name,
        f"{TAG_PREFIX}:team": order.person.team,
        f"{TAG_PREFIX}:run": name,
    }


def _too_long(environment: Mapping[str, str], most: int | None) -> Iterator[Problem]:
    if most is None:
        return
    options = {
        f"{_PREFIX}ARGUMENTS": ("arguments", "Put them into a file of the folder, and name that."),
        f"{_PREFIX}SCRIPT": ("--script", "Move the script up in its folder."),
        f"{_PREFIX}DATASET": ("--dataset", "Give the dataset a short name: --dataset NAME."),
    }
    for key, value in environment.items():
        if len(value) > most:
            option, fix = options.get(key, (key, "Shorten it in the stack file."))
            rule = f"the service passes at most {most} characters, got {len(value)}"
            yield Problem(option, None, rule, fix, code="variable-too-long")


def _of_folder(order: RunOrder, longest: int) -> str:
    """The folder's name as part of a job name; `run` for one without a letter."""
    try:
        return sanitize(order.options.folder.resolve().name)[:longest].strip("-")
    except ValueError:
        return "run"
