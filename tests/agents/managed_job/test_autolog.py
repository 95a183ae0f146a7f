"""Scripts that only switch on mlflow's autologging, with real mlflow and scikit-learn."""

import pytest
from mlflow import MlflowClient

from tests.agents.managed_job.conftest import Make
from tests.agents.managed_job.test_mlflow_run import experiment, only_run, variables

__all__ = ["experiment"]
FITTED = """
import mlflow, numpy
from sklearn.linear_model import Ridge
mlflow.autolog(log_models=False)
Ridge(alpha=0.5).fit(numpy.arange(8.0).reshape(4, 2), numpy.arange(4.0))
"""


def test_autolog_records_into_the_run_of_the_job(job: Make, store: MlflowClient, experiment: str) -> None:
    made = job(FITTED, **variables(store, experiment))
    code, said = made.run("--lr", "3e-4")
    assert code == 0, said
    run = only_run(store, experiment)
    assert run.info.run_id == made.document()["mlflow"]["run_id"] and run.info.status == "FINISHED"
    assert run.data.params["alpha"] == "0.5" and run.data.params["lr"] == "3e-4"
    assert run.data.metrics["training_r2_score"] == pytest.approx(1, abs=0.1)
    assert run.data.tags["estimator_name"] == "Ridge" and run.data.tags["trainstack.job"]
