"""Servers, databases and jobs in the ways that people write them, and what is right in another way."""

from typing import Any

import pytest

from policies.resource import Resource
from tests.policies.rules.kubernetes.test_pods import one, pods, results

SERVICE = "core/v1:Service"
AWS = "service.beta.kubernetes.io/aws-load-balancer-"


def service(name: str = "mlflow", /, notes: Any = None, **spec: Any) -> Resource:
    made = {"type": "LoadBalancer", "selector": {"app": name}, **spec}
    return one(SERVICE, name, metadata={"annotations": notes}, spec=made)


def ingress(scheme: str | None, name: str = "mlflow", kind: str = "", **spec: Any) -> Resource:
    notes = {"alb.ingress.kubernetes.io/scheme": scheme} if scheme else {}
    if kind:
        notes["kubernetes.io/ingress.class"] = kind
    paths = [{"path": "/", "backend": {"service": {"name": name}}}]
    rules = [{"host": "a.example.com", "http": {"paths": paths}}]
    return one(
        "networking.k8s.io/v1:Ingress",
        "front",
        metadata={"annotations": notes},
        spec={"rules": rules, **spec},
    )


def balancer(name: str, **props: Any) -> Resource:
    return Resource("aws:lb/loadBalancer:LoadBalancer", name, name, props={"name": name, **props})


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (service(), "fail"),
        (service(type="ClusterIP"), "pass"),
        (service(type=None), "pass"),
        (service(notes={f"{AWS}scheme": "internal"}), "pass"),
        (service(notes={f"{AWS}scheme": "internet-facing", f"{AWS}type": "external"}), "fail"),
        (service(notes={f"{AWS}internal": "true"}), "pass"),
        (service(notes={f"{AWS}type": "external"}), "pass"),
        (service(loadBalancerClass="eks.amazonaws.com/nlb"), "pass"),
        (service(notes={"networking.gke.io/load-balancer-type": "Internal"}), "pass"),
        (service(loadBalancerClass="networking.gke.io/l4-regional-internal-legacy"), "pass"),
        (service(loadBalancerClass="networking.gke.io/l4-regional-external"), "fail"),
        (service("web"), "not-applicable"),
        (service("web", selector={"app": "mlflow"}), "fail"),
        (ingress("internet-facing"), "fail"),
        (ingress("internet-facing", "web"), "not-applicable"),
        (balancer("mlflow"), "fail"),
        (balancer("mlflow", internal=True), "pass"),
        (balancer("web"), "not-applicable"),
    ],
)
def test_who_reaches_a_tracking_server(thing: Resource, expected: str) -> None:
    assert results("MLS-TRK-01", thing) == {expected}


EKS, GKE = (
    Resource("aws:eks/cluster:Cluster", "eks", "eks", props={}),
    Resource("gcp:container/cluster:Cluster", "gke", "gke", props={}),
)
AUTO = Resource("aws:eks/cluster:Cluster", "eks", "eks", props={"computeConfig": {"enabled": True}})
NGINX = ingress(None, ingressClassName="nginx")


def ingress_class(controller: str, name: str = "front", parameters: str = "", usual: str = "") -> Resource:
    notes = {"ingressclass.kubernetes.io/is-default-class": usual}
    named = {"parameters": {"kind": "IngressClassParams", "name": parameters}} if parameters else {}
    spec = {"controller": controller, **named}
    return one(
        "networking.k8s.io/v1:IngressClass", name, metadata={"name": name, "annotations": notes}, spec=spec
    )


def parameters(group: str, scheme: str) -> Resource:
    return one(f"{group}:IngressClassParams", "p", metadata={"name": "p"}, spec={"scheme": scheme})


LBC, AUTO_ALB = ingress_class("ingress.k8s.aws/alb"), ingress_class("eks.amazonaws.com/alb", parameters="p")
OPEN, SHUT = (parameters("eks.amazonaws.com/v1", scheme) for scheme in ("internet-facing", "internal"))
OPEN_LBC = parameters("elbv2.k8s.aws/v1beta1", "internet-facing")
DEFAULT = ingress_class("eks.amazonaws.com/alb", parameters="p", usual="true")
BY_CLASS = ingress(None, ingressClassName="front")


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        # The older annotation: public if it is false.
        ([service(notes={f"{AWS}internal": "false", f"{AWS}type": "external"})], "fail"),
        ([service(notes={f"{AWS}internal": "yes"})], "pass"),
        ([service(notes={f"{AWS}internal": "false"})], "fail"),
        # The scheme counts more than the older annotation.
        ([service(notes={f"{AWS}internal": "true", f"{AWS}scheme": "internet-facing"})], "fail"),
        # With EKS Auto Mode, its class is that of every Service without one.
        ([service(), AUTO], "pass"),
        ([service(), EKS], "fail"),
        ([service(notes={f"{AWS}scheme": "internet-facing"}), AUTO], "fail"),
        # GKE makes a public balancer for an Ingress without a class, or of its class.
        ([ingress(None), GKE], "fail"),
        ([ingress(None), EKS], "pass"),
        ([ingress(None)], "undetermined"),
        ([ingress(None, kind="gce")], "fail"),
        ([ingress(None, kind="gce-regional-external")], "fail"),
        ([ingress(None, kind="gce-internal"), GKE], "pass"),
        ([ingress("internal")], "pass"),
        # Classes of AWS have a scheme, which counts more than the annotation.
        ([BY_CLASS, LBC], "pass"),
        ([BY_CLASS, AUTO_ALB, OPEN], "fail"),
        ([BY_CLASS, AUTO_ALB, SHUT], "pass"),
        ([ingress("internet-facing", ingressClassName="front"), AUTO_ALB, SHUT], "pass"),
        ([BY_CLASS, ingress_class("ingress.k8s.aws/alb", parameters="p"), OPEN_LBC], "fail"),
        ([BY_CLASS, ingress_class("ingress.k8s.aws/alb", parameters="p")], "undetermined"),
        ([ingress(None), DEFAULT, OPEN], "fail"),
        # Who reaches what other controllers serve, their own Service says.
        ([NGINX], "undetermined"),
        ([BY_CLASS, ingress_class("k8s.io/ingress-nginx")], "undetermined"),
        ([NGINX, GKE], "undetermined"),
    ],
)
def test_defaults_are_those_of_the_controller(stack: list[Resource], expected: str) -> None:
    assert results("MLS-TRK-01", *stack) == {expected}


CLUSTER, INSTANCE = "aws:rds/cluster:Cluster", "aws:rds/instance:Instance"
SQL = "gcp:sql/databaseInstance:DatabaseInstance"
SAFE = {"storageEncrypted": True, "deletionProtection": True}
PRIVATE = {"ipConfiguration": {"ipv4Enabled": False}, "backupConfiguration": {"enabled": True}}


def database(kind: str, **props: Any) -> Resource:
    return Resource(kind, "db", "db", id="db", props=props)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (database(CLUSTER, **SAFE), {"pass"}),
        (database(INSTANCE, **SAFE, backupRetentionPeriod=0), {"fail"}),
        (database(INSTANCE, **SAFE, backupRetentionPeriod=0, replicateSourceDb="main"), {"pass"}),
        (database(INSTANCE, **SAFE, publiclyAccessible=True), {"fail"}),
        (database(INSTANCE, deletionProtection=True, snapshotIdentifier="last"), {"undetermined"}),
        (database(CLUSTER, deletionProtection=True, engineMode="serverless"), {"pass"}),
        (database("aws:rds/clusterInstance:ClusterInstance"), {"pass"}),
        (database(SQL, settings=PRIVATE), {"pass"}),
        (database(SQL, settings={**PRIVATE, "backupConfiguration": {}}), {"fail"}),
        (database(SQL, settings={**PRIVATE, "backupConfiguration": {}}, masterInstanceName="main"), {"pass"}),
        (database(SQL, settings=PRIVATE, deletionProtection=False), {"fail"}),
        (
            database(SQL, settings={**PRIVATE, "deletionProtectionEnabled": True}, deletionProtection=False),
            {"pass"},
        ),
    ],
)
def test_the_database(found: Resource, expected: set[str]) -> None:
    assert results("MLS-TRK-02", found) == expected


def test_a_database_that_is_not_of_production_may_be_deleted() -> None:
    assert results("MLS-TRK-02", database(CLUSTER, storageEncrypted=True)) == {"fail"}
    assert results("MLS-TRK-02", database(CLUSTER, storageEncrypted=True), production=False) == {"pass"}


BUCKET = Resource("aws:s3/bucketV2:BucketV2", "b", "b", id="artifacts", props={"bucket": "artifacts"})


def server(*command: str, name: str = "main", **variables: str) -> Resource:
    env = [{"name": key, "value": value} for key, value in variables.items()]
    return pods("apps/v1:Deployment", containers=[{"name": name, "args": list(command), "env": env}])


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        (server("mlflow", "server", "--artifacts-destination=s3://artifacts/mlflow"), "pass"),
        (server("mlflow server --default-artifact-root s3://artifacts"), "pass"),
        (server("mlflow", "server", MLFLOW_ARTIFACTS_DESTINATION="s3://artifacts"), "pass"),
        (server("mlflow", "server", "--artifacts-destination", "s3://elsewhere"), "fail"),
        (server("mlflow", "server", "--artifacts-destination", "file:///data"), "fail"),
        (server("mlflow", "server", "--default-artifact-root", "mlflow-artifacts:/"), "fail"),
        (server("mlflow", "server"), "fail"),
        (server("serve.py", name="mlflow"), "undetermined"),
        (server("serve.py", name="mlflow", ARTIFACTS_DESTINATION="s3://artifacts/mlflow"), "pass"),
        (server("nginx"), "not-applicable"),
    ],
)
def test_artifacts(workload: Resource, expected: str) -> None:
    assert results("MLS-TRK-03", workload, BUCKET) == {expected}


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]}, "fail"),
        ({"env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": "hunter2"}]}, "fail"),
        ({"env": [{"name": "WANDB_API_KEY", "value": "hunter2"}]}, "fail"),
        ({"env": [{"name": "DB_PASSWORD_FILE", "value": "/var/run/db"}]}, "pass"),
        ({"env": [{"name": "ADMIN_SECRET", "value": "arn:aws:secretsmanager:x:1:secret:y"}]}, "pass"),
        ({"env": [{"name": "TOKENIZERS_PARALLELISM", "value": "false"}]}, "pass"),
        ({"env": [{"name": "MAX_TOKEN", "value": "4096"}]}, "pass"),
        ({"env": [{"name": "DATABASE", "value": "postgresql://mlflow:hunter2@db:5432/x"}]}, "fail"),
        ({"env": [{"name": "DATABASE", "value": "postgresql://{user}:{password}@db:5432/x"}]}, "pass"),
        ({"args": ["--backend-store-uri", "postgresql://mlflow:$(PASSWORD)@db/x"]}, "pass"),
        ({"args": ["--backend-store-uri", "postgresql://mlflow:hunter2@db/x"]}, "fail"),
        ({"envFrom": [{"secretRef": {"name": "login"}}]}, "fail"),
        ({"envFrom": [{"configMapRef": {"name": "plain"}}]}, "pass"),
    ],
)
def test_credentials(container: Any, expected: str) -> None:
    assert results("MLS-TRK-04", pods(containers=[{"name": "main", **container}])) == {expected}


GPU = {"limits": {"nvidia.com/gpu": "8"}}
IMAGE = "example.com/train@sha256:" + "0" * 64
ALL = {"MLFLOW_TRACKING_URI": "http://mlflow", "MLFLOW_EXPERIMENT_ID": "1", "GIT_COMMIT": "0"}
ENV = [{"name": name, "value": value} for name, value in ALL.items()]
CONFIG = one("core/v1:ConfigMap", "tracking", data=ALL)
TRAIN_JOB = "trainer.kubeflow.org/v1alpha1:TrainJob"


def job(**container: Any) -> Resource:
    return pods(containers=[{"name": "main", "image": IMAGE, "resources": GPU, **container}])


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([job(env=ENV)], {"pass"}),
        ([job(env=ENV[1:])], {"fail"}),
        ([job(env=ENV, image="example.com/train:latest")], {"fail"}),
        ([job(env=[], resources={})], {"not-applicable"}),
        ([pods(containers=[{}], initContainers=[{"image": "plugin", "resources": GPU}])], {"not-applicable"}),
        ([job(envFrom=[{"configMapRef": {"name": "tracking"}}]), CONFIG], {"pass"}),
        ([job(envFrom=[{"configMapRef": {"name": "elsewhere"}}]), CONFIG], {"undetermined"}),
        ([one(TRAIN_JOB, spec={"trainer": {"image": IMAGE, "env": ENV}})], {"pass"}),
        ([one(TRAIN_JOB, spec={"trainer": {"env": ENV[:2]}})], {"fail"}),
    ],
)
def test_training_says_what_it_is(resources: list[Resource], expected: set[str]) -> None:
    assert results("MLS-TRK-05", *resources) == expected
