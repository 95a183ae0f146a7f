"""The renderers by name: what `render --for NAME` can make (pure)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from infra.launchers import kubeflow, kubernetes, shell
from infra.launchers.aws import sagemaker
from infra.launchers.documents import readable_json, yaml
from infra.launchers.gcp import vertex
from infra.launchers.pods import Body
from infra.launchers.runplan import RunPlan


@dataclass(frozen=True)
class Launcher:
    """One way to start a run: description, file type and renderer."""

    what: str
    suffix: str
    render: Callable[[RunPlan], str]


def _objects(make: Callable[[RunPlan], list[Body]]) -> Callable[[RunPlan], str]:
    return lambda plan: yaml(make(plan))


def _request(make: Callable[[RunPlan], Body]) -> Callable[[RunPlan], str]:
    return lambda plan: readable_json(make(plan))


LAUNCHERS: Mapping[str, Launcher] = {
    "job": Launcher(
        "an indexed Job and its Service, as the deploy gate uses", "yaml", _objects(kubernetes.job)
    ),
    "jobset": Launcher("a JobSet: the default for users' runs", "yaml", _objects(kubernetes.jobset)),
    "trainjob": Launcher("a Kubeflow TrainJob (Trainer v2)", "yaml", _objects(kubeflow.train_job)),
    "pytorchjob": Launcher("a Kubeflow PyTorchJob; legacy", "yaml", _objects(kubeflow.pytorch_job)),
    "mpijob": Launcher("an MPIJob, which needs ssh in the image; legacy", "yaml", _objects(kubeflow.mpi_job)),
    "sbatch": Launcher("a script for Slurm", "sh", shell.sbatch),
    "sagemaker": Launcher("a request of CreateTrainingJob", "json", _request(sagemaker.training_job)),
    "vertex": Launcher("a CustomJob of Vertex AI", "json", _request(vertex.custom_job)),
    "torchrun": Launcher("a script for every node, or for this machine", "sh", shell.torchrun),
}


def cron_text(plan: RunPlan, schedule: str) -> str:
    """Render the Job at the times of a cron expression, as YAML."""
    return yaml(kubernetes.cron_job(plan, schedule))
