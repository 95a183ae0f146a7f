"""Additional parts of a run's pods that follow the checkpoint policy of their namespace."""

import dataclasses
from typing import Any

from infra.launchers import kubeflow, kubernetes
from smoke_training.checkpoint_policy import CONFIG, FOLDER
from tests.infra.launchers import plans


def pod(policy: bool) -> dict[str, Any]:
    _, job = kubernetes.job(dataclasses.replace(plans.training(), checkpoint_policy=policy))
    return job["spec"]["template"]["spec"]  # type: ignore[no-any-return]


def test_pods_read_the_policy_where_there_is_one_and_hold_a_token_of_their_own() -> None:
    spec = pod(policy=True)
    (container,) = spec["containers"]
    assert container["envFrom"] == [{"configMapRef": {"name": CONFIG, "optional": True}}]
    (mount,) = [each for each in container["volumeMounts"] if each["mountPath"] == FOLDER]
    assert mount["readOnly"] is True
    (volume,) = [each for each in spec["volumes"] if each["name"] == mount["name"]]
    token, authority, names = volume["projected"]["sources"]
    # The one token of the pod: that of every container stays away.
    assert spec["automountServiceAccountToken"] is False
    assert token["serviceAccountToken"] == {"path": "token", "expirationSeconds": 3600}
    assert authority["configMap"]["name"] == "kube-root-ca.crt"
    assert [each["path"] for each in names["downwardAPI"]["items"]] == ["name", "namespace"]


def test_pods_without_it_hold_no_token() -> None:
    spec = pod(policy=False)
    assert "envFrom" not in spec["containers"][0]
    assert not any("projected" in volume for volume in spec["volumes"])


def test_a_train_job_leaves_it_to_its_runtime() -> None:
    plan = dataclasses.replace(plans.training(), checkpoint_policy=True)
    runtime = kubeflow.runtime(plan)
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    own = job["template"]["spec"]["template"]["spec"]
    assert own["containers"][0]["envFrom"] and any("projected" in volume for volume in own["volumes"])
    without = dataclasses.replace(plan, checkpoint_policy=False)
    assert kubeflow.train_job(plan) == kubeflow.train_job(without)
