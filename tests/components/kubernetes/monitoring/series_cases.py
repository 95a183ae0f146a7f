"""Series cases in a short form, as tests of promtool.

A case has `series` (promtool's notation, without the label `job`, which follows from the metric's name; a
gap is marked as stale), and `firing`: times with the alerts that fire then, exactly these, as `NAME` or
`NAME/TEAM`; or `incident`, with the `alert`, the minute in which the incident `begins` and the time `within`
which the alert fires. Besides the given series there are those of a healthy platform (`PLATFORM`), unless
`without` names them.

Prometheus parses each expression again at each moment. A case is evaluated with the rules that can have a
result for its series alone: 40 of 50 look for metrics that it has not.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
_WORD = re.compile(r"[a-zA-Z_:][\w:]*")
# Functions with a result where there are no series, and names of series that do not stand before `{`.
_OF_NOTHING = {"absent", "absent_over_time", "vector", "scalar", "__name__", "ALERTS", "ALERTS_FOR_STATE"}
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


def write(
    folder: Path, interval: str, cases: Sequence[Mapping[str, Any]], groups: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Write the files of cases for `promtool test rules`; their names in the folder."""
    names = []
    for number, case in enumerate(cases):
        test = _test(interval, case)
        metrics = {row["series"].partition("{")[0] for row in test["input_series"]}
        content = {
            "rule_files": [f"rules-{number}.yaml"],
            "evaluation_interval": interval,
            "tests": [test],
        }
        (folder / f"rules-{number}.yaml").write_text(json.dumps({"groups": speaking(groups, metrics)}))
        (folder / f"case-{number}.yaml").write_text(json.dumps(content))
        names.append(f"case-{number}.yaml")
    return names


def speaking(groups: Sequence[Mapping[str, Any]], metrics: set[str]) -> list[dict[str, Any]]:
    """The rules that can have a result where there are these metrics, and what such rules record.

    An expression without any of its metrics has no result, unless it asks for what is absent.
    """
    has, before = {*metrics}, 0
    while before < len(has):
        before = len(has)
        rules = [rule for group in groups for rule in group["rules"] if _speaks(rule["expr"], has)]
        has |= {rule["record"] for rule in rules if "record" in rule}
    kept = [
        {**group, "rules": [rule for rule in group["rules"] if _speaks(rule["expr"], has)]}
        for group in groups
    ]
    return [group for group in kept if group["rules"]]


def _speaks(expression: str, metrics: set[str]) -> bool:
    words = {*_WORD.findall(expression)}
    return bool(words & (metrics | _OF_NOTHING))


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
