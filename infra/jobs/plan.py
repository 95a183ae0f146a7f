"""A run of a stack as a run plan, which the launchers render as the request of its service (pure)."""

import json
from collections.abc import Iterator, Mapping

from infra.catalog.aws import facts
from infra.catalog.aws.jobs import JobMachine as Hardware
from infra.catalog.aws.jobs import jobs
from infra.errors import Problem, UserError
from infra.jobs.aws.search.tuning import MOST_OF_A_NAME as MOST_OF_A_SEARCH
from infra.jobs.gcp import plan as vertex
from infra.jobs.options import Order
from infra.jobs.pack import Pack
from infra.jobs.place import Place
from infra.jobs.service import Moment
from infra.naming import TAG_PREFIX, lasting_tags, sanitize
from smoke_training.launchers.bundle import NAME as WRAPPER
from smoke_training.launchers.runplan import PER_NODE, RunPlan, SageMaker

CODE, DATA = "code", "data"
COMMAND = ("python3", f"/opt/ml/input/data/{CODE}/{WRAPPER}", "job")
# TrainingEnvironmentValue and TrainingJobName of SageMaker's API.
MOST_OF_A_VALUE, _MOST_OF_A_NAME = 512, 63
_STAMP = "%y%m%d-%H%M%S"
# Of `<stack>-<person>`, with which the person's role says which jobs are hers; six are left to the folder.
_MOST_OF_A_HEAD = 42
# Machines with disks of their own get no other, and refuse to be asked for more than they have
# (VolumeSizeInGB of SageMaker's API).
_DISK_GB = 200
_PREFIX = "TRAINSTACK_"


def run_name(order: Order, now: Moment) -> str:
    """`<stack>-<person>-<folder>-<yymmdd-hhmmss>` in UTC, at most 63 letters, digits and dashes."""
    if order.options.tune is not None:
        return _search_name(order, now)
    stamp = now.strftime(_STAMP)
    head = sanitize(f"{order.outputs.stack}-{order.person.name}", max_length=_MOST_OF_A_HEAD)
    left = _MOST_OF_A_NAME - len(head) - len(stamp) - 2
    return f"{head}-{_of_folder(order, left)}-{stamp}"


def _search_name(order: Order, now: Moment) -> str:
    """`<stack>-<person>-<second in hex>`, at most 32 characters: names of trials begin with it."""
    stamp = f"{int(now.timestamp()):x}"
    most = MOST_OF_A_SEARCH - len(stamp) - 1
    return f"{sanitize(f'{order.outputs.stack}-{order.person.name}', max_length=most)}-{stamp}"


def run_plan(
    order: Order, pack: Pack, code_uri: str, now: Moment, checkpoint_uri: str | None = None
) -> RunPlan:
    """The plan of a run whose code lies below `code_uri`. Raises UserError for what is too long.

    It goes on with the checkpoints at `checkpoint_uri`; null: it begins with none, in a folder of its own.
    """
    name, outputs = run_name(order, now), order.outputs
    of_service = vertex.place if outputs.service == "vertex" else _place
    place = of_service(order, name, code_uri, checkpoint_uri)
    environment = {**_environment(order, pack, name, place.gpus), **place.environment}
    if place.sagemaker and (problems := list(_too_long(environment))):
        raise UserError(problems)
    return RunPlan(
        name=f"run-{_of_folder(order, 36)}",
        image=outputs.image,
        command=place.command,
        command_per=PER_NODE,
        nodes=order.nodes,
        gpus_per_node=place.gpus,
        cpu=place.cpu,
        memory_gib=place.memory_gib,
        env=environment,
        labels=_tags(order, name),
        timeout_s=round(order.max_hours * 3600),
        startup_timeout_s=0,  # the service counts the time of running alone
        instance_type=place.machine,
        sagemaker=place.sagemaker,
        vertex=place.vertex,
    )


def _place(order: Order, name: str, code_uri: str, checkpoint_uri: str | None) -> Place:
    """SageMaker's part."""
    hardware = _hardware(order)
    known = facts.instance_types.get(hardware.ec2)
    return Place(
        command=COMMAND,
        machine=hardware.ec2,
        gpus=hardware.gpus,
        cpu=facts.vcpus(hardware.ec2) or 1,
        memory_gib=known.memory_mib // 1024 if known else 1,
        sagemaker=_sagemaker(order, name, code_uri, checkpoint_uri),
    )


def _sagemaker(order: Order, name: str, code_uri: str, checkpoint_uri: str | None) -> SageMaker:
    outputs, options = order.outputs, order.options
    hardware = _hardware(order)
    disks = facts.instance_types.get(hardware.ec2) if hardware.has_nvme else None
    data = {DATA: options.data} if options.data else {}
    wait_s = round((order.max_hours + options.max_wait_hours) * 3600)
    own = f"{outputs.checkpoint_uri.rstrip('/')}/teams/{order.person.folder}/{name}"
    # Names of trials begin with the search's, which is too short for the rights of a role to name.
    kept = f"/{sanitize(f'{outputs.stack}-{order.person.name}-tuning')}" if options.tune else ""
    return SageMaker(
        role_arn=order.role,
        output_uri=f"{outputs.artifact_uri.rstrip('/')}/runs{kept}",
        job_name=name,
        checkpoint_uri=None if order.reads_only else checkpoint_uri or own,
        channels={CODE: code_uri, **data},
        code_channel=CODE,
        kms_key=outputs.kms_key,
        spot=order.spot,
        max_wait_s=wait_s if order.spot else None,
        keep_alive_s=options.keep_warm_minutes * 60 or None,
        training_plan_arn=order.machine.reservation,
        subnets=outputs.subnets,
        security_groups=outputs.security_groups,
        volume_gib=min(_DISK_GB, (disks.local_nvme_gb if disks else None) or _DISK_GB),
        # The service refuses a key for disks that machines bring themselves.
        volume_kms_key=None if hardware.has_nvme else outputs.kms_key,
    )


def _environment(order: Order, pack: Pack, name: str, gpus: int) -> dict[str, str]:
    """What the wrapper in the job is told (smoke_training/jobs/), without what nobody knows."""
    usd, machine = order.machine.usd_per_hour, order.machine.machine
    told = {
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
        "MAX_HOURS": f"{order.max_hours:g}",
        # Of all machines together.
        **({} if usd is None else {"COST_PER_HOUR": f"{usd * order.nodes:g}"}),
    }
    return {
        **{f"{_PREFIX}{key}": value for key, value in told.items()},
        "MLFLOW_TRACKING_URI": order.outputs.tracking_uri,
        "MLFLOW_EXPERIMENT_NAME": order.person.team,
    }


def _tags(order: Order, name: str) -> dict[str, str]:
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


def _too_long(environment: Mapping[str, str]) -> Iterator[Problem]:
    words = {
        f"{_PREFIX}ARGUMENTS": ("arguments", "Put them into a file of the folder, and name that."),
        f"{_PREFIX}SCRIPT": ("--script", "Move the script up in its folder."),
        f"{_PREFIX}DATASET": ("--dataset", "Give the dataset a short name: --dataset NAME."),
    }
    for key, value in environment.items():
        if len(value) > MOST_OF_A_VALUE:
            option, fix = words.get(key, (key, "Shorten it in the stack file."))
            rule = f"the service passes at most {MOST_OF_A_VALUE} characters on, and these are {len(value)}"
            yield Problem(option, None, rule, fix)


def _hardware(order: Order) -> Hardware:
    """What the machine has; of one that the catalog does not know, that it has no GPU."""
    machine = order.machine.machine
    return jobs.machines.get(machine) or Hardware(machine, notebook=False)


def _of_folder(order: Order, longest: int) -> str:
    """The folder's name within a name of the service; of one without a letter, `run`."""
    try:
        return sanitize(order.options.folder.resolve().name)[:longest].strip("-")
    except ValueError:
        return "run"
