"""The part of a run's plan that is Vertex AI's (pure)."""

from infra.catalog.gcp import facts
from infra.catalog.gcp.jobs import jobs
from infra.jobs.options import RunOrder
from infra.jobs.service_part import ServicePart
from infra.launchers.bundle import NAME as WRAPPER
from infra.launchers.gcp.vertex import VERTEX_CODE
from infra.launchers.runplan import VertexOptions
from smoke_training.names import IAP

COMMAND = ("python3", f"{VERTEX_CODE}/{WRAPPER}", "job")


def part(order: RunOrder, name: str, code_uri: str, checkpoint_uri: str | None) -> ServicePart:
    """A run as one custom job: its wrapper copies code, checkpoints and data from their buckets."""
    outputs, machine = order.outputs, order.machine.machine
    known, cpus = jobs.machines.get(machine), facts.cpu_type(machine)
    gpu = facts.machine_types.get(machine)
    own = f"{outputs.checkpoint_uri.rstrip('/')}/teams/{order.person.folder}/{name}"
    return ServicePart(
        command=COMMAND,
        machine=machine,
        gpus=known.gpus if known else 0,
        cpu=facts.vcpus(machine) or 1,
        memory_gib=gpu.memory_gib if gpu else cpus.memory_gib if cpus else 1,
        environment={
            "MLFLOW_TRACKING_AUTH": IAP,
            "TRAINSTACK_CHECKPOINT_URI": checkpoint_uri or own,
            **({"TRAINSTACK_DATA_URI": order.options.data} if order.options.data else {}),
        },
        vertex=VertexOptions(
            accelerator_type=known.accelerator if known else None,
            service_account=order.person.role,
            output_uri=f"{outputs.artifact_uri.rstrip('/')}/runs/{name}",
            job_name=name,
            code_uri=code_uri,
            packed=True,
            kms_key=outputs.kms_key,
            spot=order.spot,
            # The service takes 0 for an endless wait.
            flex_wait_s=max(1, round(order.options.max_wait_hours * 3600)) if order.flex_start else None,
            reservation=order.machine.reservation,
        ),
    )
