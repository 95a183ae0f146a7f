"""Examples of the rules REP."""

from dataclasses import replace
from typing import Any

from tests.policies.recording.bases import CLUSTER, NODE_GROUP, NODE_ROLE, with_changes
from tests.policies.recording.example import DROP, Example, Made

_DIGEST = "sha256:" + "0123456789abcdef" * 4


def _deployment(image: str) -> dict[str, Made]:
    labels = {"app": "mlflow"}
    pod: dict[str, Any] = {"containers": [{"name": "server", "image": image}]}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    # No replicas: nothing has to run for the record.
    made = {"metadata": {"name": "mlflow", "namespace": "default"}, "spec": {"replicas": 0, **spec}}
    return {"server": Made("kubernetes:apps/v1:Deployment", made)}


_ECR = Made(
    "aws:ecr/repository:Repository",
    {"name": "mlflow", "imageTagMutability": "IMMUTABLE", "imageScanningConfiguration": {"scanOnPush": True}},
)
_GOOGLE = Made(
    "gcp:artifactregistry/repository:Repository",
    {
        "repositoryId": "mlflow",
        "location": "us-central1",
        "format": "DOCKER",
        "dockerConfig": {"immutableTags": True},
    },
)

_POOL = NODE_GROUP.but(amiType="AL2023_x86_64_STANDARD", releaseVersion="1.35.6-20260714")


def _nodes(pool: Made) -> dict[str, Made]:
    return {**with_changes(CLUSTER, "cluster", version="1.35"), **NODE_ROLE, "pool": pool}


def _job(name: str, namespace: str, **metadata: Any) -> Made:
    """A Job without await: the recording needs no running pods."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "it", "image": f"ghcr.io/it@{_DIGEST}"}]}
    return Made(
        "kubernetes:batch/v1:Job",
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "annotations": {"pulumi.com/skipAwait": "true"},
                **metadata,
            },
            "spec": {"suspend": True, "template": {"spec": pod}},
        },
    )


_RUN = {
    "watchers": Made("kubernetes:core/v1:Namespace", {"metadata": {"name": "trainstack-watch"}}),
    "run": _job("smoke-b2", "default", labels={"trainstack.dev/run": "smoke-b2"}),
}
_WATCH = {"watch": replace(_job("smoke-b2", "trainstack-watch"), after=["watchers"])}


EXAMPLES = {
    "MLS-REP-01": Example(
        _deployment(f"ghcr.io/mlflow/mlflow@{_DIGEST}"),
        _deployment("ghcr.io/mlflow/mlflow:v3.4.0"),
        at="server",
        path="spec.template.spec.containers[0].image",
    ),
    "MLS-REP-02": Example(
        {"images": _ECR},
        {"images": _ECR.but(imageTagMutability=DROP)},
        at="images",
        path="imageTagMutability",
    ),
    "MLS-REP-02.gke": Example(
        {"images": _GOOGLE},
        {"images": _GOOGLE.but(dockerConfig=DROP)},
        at="images",
        path="dockerConfig.immutableTags",
    ),
    "MLS-REP-03": Example(
        _nodes(_POOL), _nodes(_POOL.but(releaseVersion=DROP)), at="pool", path="releaseVersion"
    ),
    "MLS-REP-04": Example({**_RUN, **_WATCH}, _RUN, at="run", path="metadata.name"),
}
