"""Series cases in a short form, as tests of promtool.

A case has `series` (promtool's notation, without the label `job`, which follows from the metric's name; a
gap is marked as stale), and `firing`: times with the alerts that fire then, exactly these, as `NAME` or
`NAME/TEAM`; or `incident`, with the `alert`, the minute in which the incident `begins` and the time `within`
which the alert fires. Besides the given series there are those of a healthy platform (`PLATFORM`), unless
`without` names them.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).with_name("cases")
# Jobs of the scrapes, by the beginning of a metric's name.
JOBS = {
    "kueue_workload_": "kube-state-metrics",
    "kueue_": "kueue",
    "kube_": "kube-state-metrics",
    "kubelet_": "kubelet",
    "container_": "kubelet",
    "node_": "node-exporter",
    "DCGM_": "dcgm-exporter",
    "prometheus_": "monitoring-prometheus",
    "alertmanager_": "monitoring-alertmanager",
    "trainstack_idle_": "idle",
    "trainstack_checkpoint_": "idle",
    "trainstack_rdma_": "node-exporter",
    "trainstack_cluster_": "dispatcher",
    "trainstack_": "gpu-ledger",
}
PLATFORM = {
    'up{job="kueue", pod="kueue-0"}': "1",
    'up{job="kube-state-metrics"}': "1",
    'up{job="monitoring-prometheus"}': "1",
    'kube_deployment_status_replicas_available{namespace="mlflow", deployment="mlflow"}': "2",
    'kube_deployment_spec_replicas{namespace="mlflow", deployment="mlflow"}': "2",
}
# A series that ends or was not scraped has a mark of staleness in Prometheus; promtool writes none.
_GAP = re.compile(r"(?<=\S) _x(\d+)")
_UNITS = {"m": 1, "h": 60, "d": 1440}


def with_job(series: str) -> str:
    """The series with the job of its exporter, where it names none."""
    name, brace, labels = series.partition("{")
    if "job=" in labels or name.startswith(("up", "trainstack:", "ALERTS")):
        return series
    job = next(job for prefix, job in JOBS.items() if name.startswith(prefix))
    return f'{name}{{job="{job}", {labels}' if brace else f'{name}{{job="{job}"}}'


def with_marks(values: str) -> str:
    """The values with a mark of staleness at the beginning of each gap."""
    return _GAP.sub(lambda gap: " stale" + (f" _x{count}" if (count := int(gap[1]) - 1) else ""), values)


def minutes(text: str) -> int:
    """A duration such as `90m` in minutes."""
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([mhd])", text))


def files() -> list[Path]:
    return sorted(FOLDER.glob("*.yaml"))


def read(path: Path) -> tuple[str, list[dict[str, Any]]]:
    """The interval of samples and evaluations, and the cases of a file."""
    # All scalars are text: `0x180` is 181 times 0.
    found = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)
    return (found["interval"], found["cases"]) if isinstance(found, dict) else ("1m", found)


def tests(interval: str, cases: list[dict[str, Any]], rule_files: list[str]) -> dict[str, Any]:
    """The file for `promtool test rules`."""
    return {
        "rule_files": rule_files,
        "evaluation_interval": interval,
        "tests": [_test(interval, case) for case in cases],
    }


def _test(interval: str, case: Mapping[str, Any]) -> dict[str, Any]:
    assert case.keys() <= {"name", "series", "firing", "incident", "without", "values"}, case
    asked = [*_asked(case)]
    last = max(minutes(row["eval_time"]) for row in asked) // minutes(interval)
    platform = {name: f"{value}x{last}" for name, value in PLATFORM.items()}
    for name in case.get("without", ()):
        del platform[name]
    series = {with_job(name): values for name, values in {**platform, **case["series"]}.items()}
    return {
        "name": case["name"],
        "interval": interval,
        "input_series": [{"series": name, "values": with_marks(values)} for name, values in series.items()],
        "promql_expr_test": asked,
    }


def _asked(case: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    firing = 'count by (alertname, team) (ALERTS{alertstate="firing", alertname!="Watchdog"})'
    for at, alerts in case.get("firing", {}).items():
        yield _row(firing, at, Counter(alerts))
    for at, values in case.get("values", {}).items():
        for expression, value in values.items():
            sample = {"labels": "{}", "value": float(value)}
            yield {"expr": expression, "eval_time": at, "exp_samples": [sample]}
    if "incident" in case:
        alert, begins = case["incident"]["alert"], minutes(case["incident"]["begins"])
        one = firing.replace('alertname!="Watchdog"', f'alertname="{alert.partition("/")[0]}"')
        yield _row(one, f"{begins}m", Counter())
        yield _row(one, f"{begins + minutes(case['incident']['within'])}m", Counter([alert]))


def _row(expression: str, at: str, alerts: Mapping[str, int]) -> dict[str, Any]:
    samples = []
    for alert, count in alerts.items():
        name, _, team = alert.partition("/")
        labels = f'alertname="{name}"' + (f', team="{team}"' if team else "")
        samples.append({"labels": f"{{{labels}}}", "value": count})
    return {"expr": expression, "eval_time": at, "exp_samples": samples}
