"""Runtimes of Kubeflow Trainer and the TrainJobs that name them."""

import pytest

from rehearsal.core.model import RefusalError
from tests.rehearsal.kubernetes.harness import RELEASE, Rehearsed


def test_a_runtime_stays_while_a_train_job_names_it(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    trainer = {"chart": "oci://ghcr.io/kubeflow/charts/kubeflow-trainer", "name": "trainer"}
    rehearsed.create(RELEASE, {**trainer, "namespace": "lab"}, "trainer")
    kind = "kubernetes:trainer.kubeflow.org/v1alpha1:"
    runtime = {"metadata": {"name": "torch-a100"}, "spec": {"mlPolicy": {"numNodes": 1}}}
    rehearsed.create(kind + "ClusterTrainingRuntime", runtime, "torch-a100")
    for name, named in (("llama", "torch-a100"), ("other", "torch-l4")):
        body = {"metadata": {"name": name, "namespace": "lab"}, "spec": {"runtimeRef": {"name": named}}}
        rehearsed.create(kind + "TrainJob", body, name)

    def delete(what: str, id: str) -> None:
        rehearsed.cloud.delete(rehearsed.call(kind + what, id.rpartition("/")[2]), id, {})

    with pytest.raises(RefusalError, match="resource-in-use stays while TrainJob lab/llama exists"):
        delete("ClusterTrainingRuntime", "torch-a100")
    delete("TrainJob", "lab/llama")
    delete("ClusterTrainingRuntime", "torch-a100")
