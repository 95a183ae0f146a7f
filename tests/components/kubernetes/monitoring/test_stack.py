"""The monitoring of a cluster as it is declared: closed, without secrets, in the order that kinds need."""

import json
from collections.abc import Mapping
from typing import Any, cast

import pulumi
import pytest

from components.kubernetes.accounting import gpu_ledger
from components.kubernetes.capacity import capacity_windows
from components.kubernetes.clusters import dispatching
from components.kubernetes.idle import idle_gpus
from components.kubernetes.monitoring import names as places
from components.kubernetes.monitoring.chart_values import values
from components.kubernetes.monitoring.scrapes import own_exporter
from components.kubernetes.monitoring.stack import ALERT_LOG_URL, Monitoring, MonitoringArgs
from tests.components.graph import Graph, deploy_graph

IMAGE = "example.com/mlflow@sha256:" + "0" * 64
SNS: Mapping[str, Any] = {"sns_configs": [{"topic_arn": "arn:aws:sns:us-east-1:1:x"}]}


def args(**more: Any) -> MonitoringArgs:
    made: dict[str, Any] = {
        "retention_days": 30,
        "storage_gib": 50,
        "memory_gib": 3,
        "platform": SNS,
        "teams": [],
        "agents": [{"cidr": "169.254.170.23/32", "port": 80}],
        "gpu_exporter": own_exporter(),
        "image": IMAGE,
        **more,
    }
    return cast(MonitoringArgs, {key: value for key, value in made.items() if value is not None})


def monitoring(**more: Any) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        return {"url": Monitoring("dev-monitoring", args(**more)).prometheus_url}

    return deploy_graph(program)


@pytest.fixture(scope="module")
def made() -> Graph:
    return monitoring()


def test_kinds_of_the_chart_come_after_the_chart_and_it_after_the_login_and_the_fence(made: Graph) -> None:
    release = "Release:dev-monitoring-kube-prometheus-stack"
    for kind in ("PrometheusRule", "ServiceMonitor", "PodMonitor"):
        for name in made.all(kind):
            assert release in made.waits_for(f"{kind}:{name}")
    assert {
        "Job:dev-monitoring-login",
        "NetworkPolicy:dev-monitoring-policy",
        "Namespace:dev-monitoring-namespace",
    } <= made.waits_for(release)
    assert made.outputs["url"] == places.PROMETHEUS_URL


def test_the_namespace_takes_no_privileged_pod_and_may_read_metrics(made: Graph) -> None:
    labels = made.find("Namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert labels["trainstack.dev/metrics"] == "allowed"


def test_only_its_own_pods_and_clients_of_prometheus_reach_it(made: Graph) -> None:
    policy = made.find("NetworkPolicy", "-policy")["spec"]
    assert policy["podSelector"] == {}
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
    own, asking = policy["ingress"]
    assert own == {"from": [{"podSelector": {}}]}
    assert asking["from"] == [{"namespaceSelector": {"matchLabels": {"trainstack.dev/queries": "allowed"}}}]
    assert [port["port"] for port in asking["ports"]] == [9090]
    ports = {port["port"] for rule in policy["egress"] for port in rule.get("ports", ())}
    assert ports == {53, 443, 80, 8080, 8443, 9100, 9400, 10250}
    assert {"cidr": "169.254.170.23/32"} in [
        peer.get("ipBlock") for rule in policy["egress"] for peer in rule.get("to", ())
    ]


def test_no_password_is_in_what_pulumi_sees(made: Graph) -> None:
    grafana = made.find("Release")["values"]["grafana"]
    assert grafana["admin"] == {
        "existingSecret": "grafana-login",
        "userKey": "username",
        "passwordKey": "password",
    }
    assert "adminPassword" not in grafana
    assert grafana["grafana.ini"]["auth.anonymous"] == {"enabled": False}
    assert made.all("Secret") == {}
    (rule,) = made.find("Role")["rules"]
    assert (rule["resources"], rule["verbs"]) == (["secrets"], ["create"])


def test_credentials_of_pagers_are_files_of_a_secret_that_the_stack_does_not_have() -> None:
    pager = {"name": "oncall", "kind": "pagerduty", "key": "pd", "severities": ["critical"], "europe": False}
    graph = monitoring(receivers=[pager], runbooks_url="https://example.com/runbooks")
    alertmanager = graph.find("Release")["values"]["alertmanager"]
    # Without the Secret its pod starts all the same: mail is sent.
    (volume,) = alertmanager["alertmanagerSpec"]["volumes"]
    (mount,) = alertmanager["alertmanagerSpec"]["volumeMounts"]
    assert volume == {"name": mount["name"], "secret": {"secretName": "alert-receivers", "optional": True}}
    (settings,) = alertmanager["config"]["receivers"][-1]["pagerduty_configs"]
    assert settings["routing_key_file"] == f"{mount['mountPath']}/pd"
    assert graph.all("Secret") == {}
    urls = json.dumps([graph.all("PrometheusRule")])
    assert "https://example.com/runbooks/telemetry/Watchdog.md" in urls and "docs/runbooks/" not in urls


def test_dashboards_lie_where_the_sidecar_of_grafana_looks(made: Graph) -> None:
    sidecar = made.find("Release")["values"]["grafana"]["sidecar"]
    assert sidecar["dashboards"]["searchNamespace"] == "monitoring"
    found = [
        config
        for config in made.all("ConfigMap").values()
        if config["metadata"].get("labels") == {"grafana_dashboard": "1"}
    ]
    assert len(found) == 4
    for config in found:
        (text,) = config["data"].values()
        assert json.loads(text)["panels"]


def test_alerts_are_written_to_a_log_only_where_a_cloud_takes_them_from_there(made: Graph) -> None:
    assert made.all("Deployment") == {}
    logged = monitoring(alert_log=True)
    assert logged.find("Deployment")["metadata"]["name"] == "alert-log"
    service = logged.find("Service")
    assert ALERT_LOG_URL.startswith(f"http://{service['metadata']['name']}.monitoring.svc")
    assert service["spec"]["selector"] == {"app.kubernetes.io/name": "alert-log"}
    account = logged.find("ServiceAccount", "alert-log-account")
    assert account["automountServiceAccountToken"] is False
    # It may do nothing: the only role is that of the login.
    assert list(logged.all("Role")) == ["dev-monitoring-login-role"]


def test_gpus_are_read_where_there_are_some_from_the_exporter_that_is_there(made: Graph) -> None:
    (own,) = [spec for name, spec in made.all("PodMonitor").items() if name.endswith("-gpus")]
    assert own["spec"]["namespaceSelector"] == {"matchNames": ["kube-system"]}
    (endpoint,) = own["spec"]["podMetricsEndpoints"]
    assert endpoint["honorLabels"] is True
    assert {"node", "job"} == {relabeling["targetLabel"] for relabeling in endpoint["relabelings"]}
    (managed,) = [
        spec
        for name, spec in monitoring(gpu_exporter={"namespace": "cloud-managed", "name": "exporter"})
        .all("PodMonitor")
        .items()
        if name.endswith("-gpus")
    ]
    assert managed["spec"]["namespaceSelector"] == {"matchNames": ["cloud-managed"]}
    assert not [name for name in monitoring(gpu_exporter=None).all("PodMonitor") if name.endswith("-gpus")]


def test_no_pod_or_object_of_a_team_adds_metrics_rules_or_receivers(made: Graph) -> None:
    """A team's pod may carry any label; monitors in its namespace are not read."""
    homes = (gpu_ledger, idle_gpus, capacity_windows, dispatching)
    programs = {places.NAMESPACE, *(one.NAMESPACE for one in homes)}
    read = {"kueue-system", "jobset-system", "kubeflow-system", "kube-system"}
    for kind in ("PodMonitor", "ServiceMonitor"):
        for name, body in made.all(kind).items():
            where = set(body["spec"]["namespaceSelector"]["matchNames"])
            assert where == programs if name.endswith("-programs") else where < read, name
            assert 0 < body["spec"]["sampleLimit"] <= 50_000
    release = made.find("Release")["values"]
    spec = release["prometheus"]["prometheusSpec"]
    kinds = ("rule", "serviceMonitor", "podMonitor", "probe", "scrapeConfig")
    selectors = [spec[f"{kind}NamespaceSelector"] for kind in kinds]
    selectors.append(release["alertmanager"]["alertmanagerSpec"]["alertmanagerConfigNamespaceSelector"])
    for selector in selectors:
        (row,) = selector["matchExpressions"]
        assert (row["key"], row["operator"]) == ("kubernetes.io/metadata.name", "In")
        # Where the chart and we have our own objects (the node exporter's monitor).
        assert set(row["values"]) == {"monitoring", "kube-system"}
    # The chart would else let editors of every namespace create them.
    assert "createAggregateClusterRoles" not in release.get("global", {}).get("rbac", {})


def test_prometheus_deletes_by_size_before_its_disk_is_full() -> None:
    made = values(retention_days=7, storage_gib=100, memory_gib=3, alertmanager={})
    spec = made["prometheus"]["prometheusSpec"]
    assert (spec["retention"], spec["retentionSize"]) == ("7d", "80GiB")
    claim = spec["storageSpec"]["volumeClaimTemplate"]["spec"]
    assert claim["resources"]["requests"]["storage"] == "100Gi"


def test_jobs_of_teams_are_not_what_the_charts_own_alerts_watch() -> None:
    rules = values(retention_days=7, storage_gib=100, memory_gib=3, alertmanager={})["defaultRules"]
    assert "team-" not in rules["appNamespacesTarget"]
    assert {"KubeJobFailed", "KubeJobNotCompleted"} <= set(rules["disabled"])


def test_kube_state_metrics_reads_no_secrets() -> None:
    state = values(retention_days=7, storage_gib=100, memory_gib=3, alertmanager={})["kube-state-metrics"]
    assert {"secrets", "configmaps"} <= set(state["collectorsExclude"])
    assert state["rbac"]["extraRules"] == [
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": ["list", "watch"]}
    ]
