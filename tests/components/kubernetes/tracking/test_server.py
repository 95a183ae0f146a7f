"""The server's pods: what `restricted` Pod Security asks for, who reaches them, how they are replaced."""

from pathlib import Path
from typing import Any, cast

import pulumi

from agents.mlflow_server import serve
from components.kubernetes.queueing.tenancy import TRACKING_LABEL
from components.kubernetes.tracking.pod import MlflowServerArgs
from components.kubernetes.tracking.server import MlflowServer
from tests.agents.mlflow_server.conftest import DOOR
from tests.components.graph import deploy_graph
from tests.components.recorder import Recorder, deploy

POLICY = "kubernetes:networking.k8s.io/v1:NetworkPolicy"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
DEFAULTS = {
    "image": "registry.example/mlflow@sha256:0",
    "replicas": 2,
    "workers": 3,
    "grants": {"environment": {"REGION": "here"}, "agents": [{"cidr": "169.254.170.23/32", "port": 80}]},
    "secret_store": "def connect(environment): ...\n",
    "database_uri": "postgresql+psycopg2://mlflow@db:5432/mlflow",
    "database_secret": "database",
    "admin_secret": "admin",
    "artifacts_destination": "s3://artifacts/mlflow",
}


def made(**changes: Any) -> tuple[Recorder, dict[str, Any]]:
    def program() -> dict[str, pulumi.Output[Any]]:
        server = MlflowServer("dev-mlflow", cast(MlflowServerArgs, DEFAULTS | changes))
        return {"url": server.url, "namespace": server.namespace}

    return deploy(program)


def pod_and_container(cloud: Recorder) -> tuple[dict[str, Any], dict[str, Any]]:
    pod = cloud.one(DEPLOYMENT).properties["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return pod, container


def test_namespace_enforces_what_the_pod_fulfils() -> None:
    cloud, _ = made()
    labels = cloud.one("kubernetes:core/v1:Namespace", "dev-mlflow-namespace").properties["metadata"][
        "labels"
    ]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    pod, container = pod_and_container(cloud)
    # The controls of the restricted profile (Kubernetes docs, "Pod Security Standards").
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert {kind for volume in pod["volumes"] for kind in volume if kind != "name"} <= {
        "configMap",
        "emptyDir",
    }


def test_the_service_which_waits_for_ready_pods_is_made_after_them() -> None:
    def program() -> dict[str, pulumi.Output[str]]:
        return {"url": MlflowServer("dev-mlflow", cast(MlflowServerArgs, DEFAULTS)).url}

    assert "Deployment:dev-mlflow-deployment" in deploy_graph(program).waits_for("Service:dev-mlflow-service")


def test_root_is_read_only_and_tmp_is_where_the_server_writes() -> None:
    pod, container = pod_and_container(made()[0])
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert "emptyDir" in volumes[mounts["/tmp"]["name"]]
    assert mounts["/opt/trainstack"]["readOnly"] is True


def test_pod_has_no_kubernetes_token_and_no_service_links() -> None:
    cloud, _ = made()
    pod, _ = pod_and_container(cloud)
    assert pod["automountServiceAccountToken"] is False
    account = cloud.one("kubernetes:core/v1:ServiceAccount", "dev-mlflow-account").properties
    assert account["automountServiceAccountToken"] is False
    # The links of a Service called mlflow would set MLFLOW_PORT=tcp://10.0.0.1:5000.
    assert pod["enableServiceLinks"] is False


def test_program_in_the_config_map_is_the_tested_file_under_a_name_made_from_it() -> None:
    cloud, _ = made()
    config = cloud.one("kubernetes:core/v1:ConfigMap", "dev-mlflow-program").properties
    module = "agents.mlflow_server.serve"
    assert config["data"][f"{module}.py"] == Path(serve.__file__).read_text()
    assert config["immutable"] is True
    pod, container = pod_and_container(cloud)
    (program,) = [volume for volume in pod["volumes"] if "configMap" in volume]
    assert program["configMap"]["name"] == config["metadata"]["name"]
    assert {"key": f"{module}.py", "path": f"{module.replace('.', '/')}.py"} in program["configMap"]["items"]
    assert container["command"] == ["python", "-m", module]
    assert container["workingDir"] in {mount["mountPath"] for mount in container["volumeMounts"]}
    assert sum(map(len, config["data"].values())) < 1024 * 1024


def test_the_tables_are_upgraded_with_the_same_image_before_the_servers_are_replaced() -> None:
    def program() -> dict[str, pulumi.Output[str]]:
        return {"url": MlflowServer("dev-mlflow", cast(MlflowServerArgs, DEFAULTS)).url}

    graph = deploy_graph(program)
    job = graph.find("Job", "dev-mlflow-schema-job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["image"] == DEFAULTS["image"]
    assert "Job:dev-mlflow-schema-job" in graph.waits_for("Deployment:dev-mlflow-deployment")
    # An image that cannot be pulled does not wait as long as an upgrade may.
    assert "Job:dev-mlflow-schema-image" in graph.waits_for("Job:dev-mlflow-schema-job")
    look = graph.find("Job", "dev-mlflow-schema-image")
    assert look["spec"]["activeDeadlineSeconds"] <= 600
    assert look["spec"]["template"]["spec"]["containers"][0]["image"] == DEFAULTS["image"]
    # It may scale this one Deployment and nothing else in the servers' namespace.
    rules = graph.find("Role")["rules"]
    named = {(rule["resources"][0], *rule["verbs"]): rule.get("resourceNames") for rule in rules}
    assert named == {
        ("deployments", "get"): ["mlflow"],
        ("deployments/scale", "patch"): ["mlflow"],
        ("pods", "list"): None,
    }  # fmt: skip


def test_another_image_is_another_job() -> None:
    def job(image: str) -> str:
        return str(
            made(image=image)[0].one("kubernetes:batch/v1:Job", "schema-job").properties["metadata"]["name"]
        )

    assert job("registry.example/mlflow@sha256:0") != job("registry.example/mlflow@sha256:1")
    assert job("registry.example/mlflow@sha256:0") == job("registry.example/mlflow@sha256:0")


def test_pods_are_replaced_one_by_one_spread_out_and_drained_in_turn() -> None:
    cloud, _ = made()
    spec = cloud.one(DEPLOYMENT).properties["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    spread = spec["template"]["spec"]["topologySpreadConstraints"]
    assert [constraint["topologyKey"] for constraint in spread] == [
        "topology.kubernetes.io/zone",
        "kubernetes.io/hostname",
    ]
    budget = cloud.one("kubernetes:policy/v1:PodDisruptionBudget").properties["spec"]
    assert budget["maxUnavailable"] == 1
    assert "minAvailable" not in budget


def test_everything_selects_the_same_pods() -> None:
    cloud, _ = made()
    spec = cloud.one(DEPLOYMENT).properties["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels
    assert cloud.one("kubernetes:core/v1:Service").properties["spec"]["selector"] == labels
    policy = cloud.one(POLICY, "dev-mlflow-policy").properties["spec"]
    assert policy["podSelector"]["matchLabels"] == labels
    budget = cloud.one("kubernetes:policy/v1:PodDisruptionBudget").properties["spec"]
    assert budget["selector"]["matchLabels"] == labels


def test_memory_grows_with_the_workers_and_is_both_asked_for_and_the_limit() -> None:
    def memory(workers: int) -> int:
        resources = pod_and_container(made(workers=workers)[0])[1]["resources"]
        assert resources["limits"]["memory"] == resources["requests"]["memory"]
        return int(resources["limits"]["memory"].removesuffix("Mi"))

    assert memory(1) == 1024
    assert memory(4) - memory(1) == 3 * 512


def test_only_labelled_namespaces_get_in_and_only_dns_postgres_https_and_the_agent_get_out() -> None:
    policy = made()[0].one(POLICY, "dev-mlflow-policy").properties["spec"]
    assert sorted(policy["policyTypes"]) == ["Egress", "Ingress"]
    (entrance,) = policy["ingress"]
    assert entrance["from"] == [{"namespaceSelector": {"matchLabels": {TRACKING_LABEL: "allowed"}}}]
    assert [port["port"] for port in entrance["ports"]] == [5000]
    exits = {
        (peer.get("ipBlock", {}).get("cidr"), port["port"])
        for rule in policy["egress"]
        for peer in rule["to"]
        for port in rule["ports"]
    }
    names = {(None, 53), ("169.254.20.10/32", 53), ("169.254.169.254/32", 53)}
    assert exits == names | {("0.0.0.0/0", 5432), ("0.0.0.0/0", 443), ("169.254.170.23/32", 80)}, (
        "the instance metadata service (port 80 of 169.254.169.254) must stay out of reach"
    )


def test_a_pod_that_is_no_server_has_no_network_access() -> None:
    spec = made()[0].one(POLICY, "-closed").properties["spec"]
    assert spec == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_probes_ask_what_needs_no_user() -> None:
    _, container = pod_and_container(made()[0])
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": "http"}
    startup = container["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 300


def test_the_server_also_answers_a_port_forward_which_comes_in_on_the_loopback() -> None:
    variables = {row["name"]: row["value"] for row in pod_and_container(made()[0])[1]["env"]}
    assert variables["HOST"] == "0.0.0.0"
    assert {"localhost:*", "127.0.0.1:*"} <= set(variables["ALLOWED_HOSTS"].split(","))


def test_url_is_a_name_the_server_accepts() -> None:
    cloud, outputs = made(namespace="tracking")
    (allowed,) = [v["value"] for v in pod_and_container(cloud)[1]["env"] if v["name"] == "ALLOWED_HOSTS"]
    assert outputs["url"].removeprefix("http://") in allowed.split(",")
    assert outputs["url"] == "http://mlflow.tracking.svc.cluster.local:5000"
    assert "*" not in allowed.split(",")


def test_a_door_opens_the_server_to_a_load_balancer_only() -> None:
    cloud, outputs = made(door=DOOR)
    policy = cloud.one(POLICY, "dev-mlflow-policy").properties["spec"]
    (entrance,) = policy["ingress"]
    clients = {"namespaceSelector": {"matchLabels": {TRACKING_LABEL: "allowed"}}}
    assert entrance["from"] == [clients, *({"ipBlock": {"cidr": cidr}} for cidr in DOOR["cidrs"])]
    door = cloud.one("kubernetes:core/v1:Service", "-door").properties["spec"]
    # With `Cluster`, another node would pass packets on under its own address.
    assert (door["type"], door["externalTrafficPolicy"]) == ("NodePort", "Local")
    (port,) = door["ports"]
    assert (port["nodePort"], port["targetPort"]) == (DOOR["node_port"], "http")
    inside = cloud.one("kubernetes:core/v1:Service", "-service").properties["spec"]
    assert (inside["type"], inside["selector"]) == ("ClusterIP", door["selector"])
    pod, _ = pod_and_container(cloud)
    assert pod["nodeSelector"] == DOOR["node_labels"], "the load balancer knows these nodes alone"
    assert cloud.one(DEPLOYMENT).properties["spec"]["minReadySeconds"] == 15
    assert outputs["url"] == made()[1]["url"]


def test_without_a_door_there_is_none() -> None:
    cloud, _ = made()
    assert len(cloud.of_type("kubernetes:core/v1:Service")) == 1
    pod, container = pod_and_container(cloud)
    assert "nodeSelector" not in pod
    assert "MLFLOW_SERVER_CORS_ALLOWED_ORIGINS" not in {row["name"] for row in container["env"]}
