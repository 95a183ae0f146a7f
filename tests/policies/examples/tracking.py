"""Examples of the rules TRK that are about the server, its database and its clients."""

from collections.abc import Mapping
from typing import Any

from tests.policies.recording.example import Example, Made

_IMAGE = "example.com/mlflow@sha256:" + "0" * 64
_META = {"name": "mlflow", "namespace": "default"}
_BUCKET = {"artifacts": Made("aws:s3/bucket:Bucket", {"bucket": "example-artifacts"})}


def _service(annotations: Mapping[str, str]) -> dict[str, Made]:
    return {
        "mlflow": Made(
            "kubernetes:core/v1:Service",
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {**_META, "annotations": annotations},
                "spec": {"type": "LoadBalancer", "ports": [{"port": 5000}], "selector": {"app": "mlflow"}},
            },
        )
    }


def _database(**props: Any) -> dict[str, Made]:
    usual = {"engine": "aurora-postgresql", "masterUsername": "mlflow", "manageMasterUserPassword": True}
    made = {**usual, "deletionProtection": True, "finalSnapshotIdentifier": "last", **props}
    return {"database": Made("aws:rds/cluster:Cluster", made)}


def _cloud_sql(**network: object) -> dict[str, Made]:
    settings = {
        "tier": "db-custom-1-3840",
        "backupConfiguration": {"enabled": True},
        "ipConfiguration": network,
    }
    props = {"databaseVersion": "POSTGRES_17", "region": "us-central1", "settings": settings}
    peering = {"network": "$network", "service": "servicenetworking.googleapis.com"}
    addresses = {"purpose": "VPC_PEERING", "addressType": "INTERNAL", "prefixLength": 16}
    return {
        "network": Made("gcp:compute/network:Network", {"autoCreateSubnetworks": False}),
        "addresses": Made("gcp:compute/globalAddress:GlobalAddress", {**addresses, "network": "$network"}),
        "peering": Made(
            "gcp:servicenetworking/connection:Connection",
            {**peering, "reservedPeeringRanges": ["$addresses.name"]},
        ),
        "database": Made("gcp:sql/databaseInstance:DatabaseInstance", props, after=["peering"]),
    }


def _pod(**container: object) -> dict[str, Any]:
    made = {"name": "main", "image": _IMAGE, **container}
    return {"metadata": {"labels": {"app": "mlflow"}}, "spec": {"containers": [made]}}


def _server(place: str) -> dict[str, Made]:
    command = ["mlflow", "server", "--host", "0.0.0.0", "--artifacts-destination", place]
    return {
        **_BUCKET,
        "server": Made(
            "kubernetes:apps/v1:Deployment",
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {**_META, "annotations": {"pulumi.com/skipAwait": "true"}},
                "spec": {"selector": {"matchLabels": {"app": "mlflow"}}, "template": _pod(command=command)},
            },
        ),
    }


def _job(*env: Mapping[str, Any]) -> dict[str, Made]:
    template = _pod(env=list(env), resources={"limits": {"nvidia.com/gpu": "1"}})
    template["spec"]["restartPolicy"] = "Never"
    return {
        "job": Made(
            "kubernetes:batch/v1:Job",
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {**_META, "annotations": {"pulumi.com/skipAwait": "true"}},
                "spec": {"template": template},
            },
        )
    }


_URI = {"name": "MLFLOW_TRACKING_URI", "value": "http://mlflow:5000"}
_EXPERIMENT = {"name": "MLFLOW_EXPERIMENT_NAME", "value": "pretraining"}
_COMMIT = {"name": "GIT_SHA", "value": "0" * 40}
_PASSWORD = {
    "name": "MLFLOW_TRACKING_PASSWORD",
    "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}},
}
_CREDENTIALS = {"name": "MLFLOW_CREDENTIALS_FILE", "value": "/var/run/mlflow/credentials"}

EXAMPLES = {
    "MLS-TRK-01": Example(
        _service({"service.beta.kubernetes.io/aws-load-balancer-scheme": "internal"}),
        _service({"service.beta.kubernetes.io/aws-load-balancer-scheme": "internet-facing"}),
        at="mlflow",
        path="spec.type",
    ),
    "MLS-TRK-02": Example(
        _database(storageEncrypted=True), _database(), at="database", path="storageEncrypted"
    ),
    "MLS-TRK-02.gcp": Example(
        _cloud_sql(ipv4Enabled=False, privateNetwork="$network"),
        _cloud_sql(ipv4Enabled=True),
        at="database",
        path="settings.ipConfiguration.ipv4Enabled",
    ),
    "MLS-TRK-03": Example(
        _server("s3://example-artifacts/mlflow"),
        _server("/mlartifacts"),
        at="server",
        path="spec.template.spec.containers[0]",
    ),
    "MLS-TRK-04": Example(
        _job(_CREDENTIALS), _job(_PASSWORD), at="job", path="spec.template.spec.containers[0].env[0]"
    ),
    "MLS-TRK-05": Example(
        _job(_URI, _EXPERIMENT, _COMMIT),
        _job(_URI, _EXPERIMENT),
        at="job",
        path="spec.template.spec.containers[0].env",
    ),
}
