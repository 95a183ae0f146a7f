"""A healthy month of a cluster as series for promtool: what users and clouds do every day, nothing broken.

A series is made of parts: from a minute, until a minute, with a value or a function of the minute. Samples
are five minutes apart. Nodes and jobs have the same names every day, so that promtool takes seconds. The
first day is Prometheus' first.
"""

from collections.abc import Callable, Iterator
from itertools import groupby

STEP, DAY = 5, 1440
DAYS = 30
ONE_OF_EACH = 14
"""After so many days, everything that is not daily has happened once."""
END = DAYS * DAY + STEP
# Kube-state-metrics restarts once a week, and an upgrade replaces the monitoring: nothing is scraped.
_STATE_GAPS = [(9 * DAY + 600, 5), (16 * DAY + 600, 5), (23 * DAY + 605, 5)]
_UPGRADE = (11 * DAY + 660, 5)
TEAMS = ("vision", "nlp", "new")
_NEW_FROM = 10 * DAY

Part = tuple[str, int, int, float | Callable[[int], float | None]]
Parts = Iterator[Part]


def series() -> Iterator[dict[str, str]]:
    """All series in promtool's notation."""
    found: dict[str, dict[int, float]] = {}
    for parts in (_platform, _nodes, _gpus, _jobs, _volumes, _ledger, _monitoring):
        for name, begin, end, value in parts():
            gaps = [_UPGRADE, *(_STATE_GAPS if 'job="kube-state-metrics"' in name else ())]
            samples = found.setdefault(name, {})
            for at in range(begin, min(end, END), STEP):
                one = value(at) if callable(value) else value
                if one is not None and not _in(at, gaps):
                    samples[at // STEP] = one
    for name, samples in found.items():
        yield {"series": name, "values": _values(samples)}


def _in(at: int, gaps: list[tuple[int, int]]) -> bool:
    return any(begin <= at < begin + length for begin, length in gaps)


def _values(samples: dict[int, float]) -> str:
    parts, seen = [], False
    for value, group in groupby(samples.get(step) for step in range(END // STEP)):
        count = len(list(group))
        if value is not None:
            parts.append(f"{value:.6g}x{count - 1}" if abs(value) < 1e5 else f"{value:.0f}x{count - 1}")
        elif seen:
            parts.append("stale" + (f" _x{count - 1}" if count > 1 else ""))
        else:
            parts.append(f"_x{count}")
        seen = True
    return " ".join(parts)


def _platform() -> Parts:
    state = 'job="kube-state-metrics"'
    yield f"up{{{state}}}", 0, END, 1
    # Kueue is upgraded every week, one replica after the other; each has a new name.
    for week in range(5):
        begin, end = week * 7 * DAY, (week + 1) * 7 * DAY
        for replica, late in (("a", 0), ("b", 15)):
            pod = f'job="kueue", pod="kueue-{week}{replica}"'
            yield f"up{{{pod}}}", begin + late, end + late - 5, 1
        leads = f'cluster_queue="nlp", reason="PodsReadyTimeout", replica_role="leader", pod="kueue-{week}a"'
        # Two a day: a machine that did not come.
        evicted = f'kueue_evicted_workloads_total{{job="kueue", {leads}}}'
        yield evicted, begin + 720, end, _count(begin)
    mlflow = f'{state}, namespace="mlflow", deployment="mlflow"'
    upgrades = [(12 * DAY + 600, 20), (26 * DAY + 600, 20)]
    yield f"kube_deployment_spec_replicas{{{mlflow}}}", 0, END, lambda at: 0 if _in(at, upgrades) else 2
    ready = f"kube_deployment_status_replicas_available{{{mlflow}}}"
    yield ready, 0, END, lambda at: 0 if _in(at, [(begin, length + 5) for begin, length in upgrades]) else 2
    for day in range(DAYS):
        begin = day * DAY + 180
        job = f'{state}, namespace="trainstack-smoke", job_name="smoke-schedule-h100-{day % 3}"'
        yield f"kube_job_status_failed{{{job}}}", begin, begin + 3 * DAY - 60, 0
        yield f"kube_job_created{{{job}}}", begin, begin + 3 * DAY - 60, begin * 60


def _nodes() -> Parts:
    """Three system nodes; four nodes come every morning and go in the evening; spot nodes end at noon."""
    for number in range(3):
        # An upgrade replaces each of them on one day.
        moment = 8 * DAY + number * 60
        yield from _node(f"sys-{number}a", 0, moment, lost=moment - 10)
        yield from _node(f"sys-{number}b", moment, END)
    for day in range(DAYS):
        for number in range(4):
            begin, end = day * DAY + 480 + 5 * number, day * DAY + 1200 + 5 * number
            yield from _node(
                f"h-{number}", begin, end, gpus=8, taint="ToBeDeletedByClusterAutoscaler", lost=end - 15
            )
        for number in range(3):
            begin, end = day * DAY + 490, day * DAY + 750
            taint = "cloud.google.com/impending-node-termination" if day % 2 else ""
            yield from _node(
                f"spot-{number}", begin, end, gpus=8, taint=taint, lost=end - (15 if taint else 10)
            )
    yield from _node("mig", 0, END, gpus=7)


def _node(name: str, begin: int, end: int, *, gpus: int = 0, taint: str = "", lost: int = END) -> Parts:
    """A node whose kubelet ends at `lost`, and its object at `end`."""
    node = f'job="kube-state-metrics", node="{name}"'
    condition = f'kube_node_status_condition{{{node}, condition="Ready"'
    yield f'{condition}, status="unknown"}}', begin, end, lambda at: float(at >= lost)
    yield f'{condition}, status="false"}}', begin, end, lambda at: float(at < begin + 5)
    yield f'kube_node_status_condition{{{node}, condition="DiskPressure", status="true"}}', begin, end, 0
    yield f'kube_node_labels{{{node}, label_trainstack_dev_pool="{name.partition("-")[0]}"}}', begin, end, 1
    if taint:
        yield f'kube_node_spec_taint{{{node}, key="{taint}", effect="NoSchedule"}}', lost - 10, end, 1
    for kind in ("capacity", "allocatable") if gpus else ():
        # The device plugin starts after ten minutes.
        devices = f'kube_node_status_{kind}{{{node}, resource="nvidia_com_gpu", unit="integer"}}'
        yield devices, begin, end, lambda at: gpus if at >= begin + 10 else 0


def _gpus() -> Parts:
    """Two GPUs stand for the eight of a node; one node has parts of GPUs and stays."""
    for day in range(DAYS):
        for number in range(4):
            begin, end = day * DAY + 495 + 5 * number, day * DAY + 1185 + 5 * number
            pod = f'namespace="team-{("vision", "nlp")[number % 2]}", pod="job-{number}"'
            for gpu in range(2):
                of = f'job="dcgm-exporter", node="h-{number}", UUID="GPU-{number}-{gpu}", gpu="{gpu}", {pod}'
                yield f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{of}}}", begin, end, _busy
                yield f"DCGM_FI_DEV_GPU_TEMP{{{of}}}", begin, end, 61
            for code in (13, 31, 43, 45):
                yield f'DCGM_EXP_XID_ERRORS_COUNT{{{of}, xid="{code}"}}', begin + 60, begin + 65, 1
        for number in range(3):
            of = f'job="dcgm-exporter", node="spot-{number}", UUID="GPU-s-{number}", gpu="0"'
            yield f"DCGM_FI_DEV_GPU_TEMP{{{of}}}", day * DAY + 500, day * DAY + 740, 60
    for part in range(7):
        of = f'job="dcgm-exporter", node="mig", UUID="GPU-mig", GPU_I_ID="{part}", gpu="0"'
        busy = f'DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{of}, namespace="team-vision", pod="notebooks"}}'
        # The exporter is updated once.
        yield busy, 0, 13 * DAY + 600, 0.7
        yield busy, 13 * DAY + 610, END, 0.7


def _busy(at: int) -> float:
    """A checkpoint every hour, and an evaluation of half an hour at noon."""
    return 0.2 if at % 60 == 0 or 720 <= at % DAY < 750 else 0.93


def _jobs() -> Parts:
    """Each team starts six jobs a day; one in thirty fails."""
    for day in range(DAYS):
        for team in TEAMS:
            for number in range(6):
                created = day * DAY + 485 + 100 * number
                if team != "new" or created >= _NEW_FROM:
                    failed = (day * 6 + number) % 30 == 29
                    name = f'namespace="team-{team}", workload="j{number}", priority="default"'
                    yield from _job(name, created, created + 10 + 5 * (number % 3), failed)
        sweep = 'namespace="team-nlp", workload="sweep", priority="sweep"'
        yield from _job(sweep, day * DAY + 1000, day * DAY + 1400, False)
        yield from _held(day)


def _job(labels: str, created: int, admitted: int, failed: bool) -> Parts:
    name = f'job="kube-state-metrics", {labels}, active="true"'
    ended, gone = admitted + 90, admitted + 210
    yield f"kueue_workload_created_seconds{{{name}}}", created, gone, created * 60
    reserved = f'kueue_workload_quota_reserved_changed_seconds{{{name}, reserved="True"}}'
    yield reserved, admitted, gone, admitted * 60
    yield f'kueue_workload_admitted_changed_seconds{{{name}, admitted="True"}}', admitted, gone, admitted * 60
    reason = "Failed" if failed else "Succeeded"
    yield f'kueue_workload_finished_seconds{{{name}, reason="{reason}"}}', ended, gone, ended * 60


def _held(day: int) -> Parts:
    """A job that waits for the window of its pool, and one for the machines of a queued purchase."""
    begin, opens = day * DAY + 600, day * DAY + 1200
    name = 'job="kube-state-metrics", namespace="team-nlp", workload="window", priority="default"'
    yield f'kueue_workload_created_seconds{{{name}, active="false"}}', begin, opens, begin * 60
    yield f'kueue_workload_created_seconds{{{name}, active="true"}}', opens, opens + 15, begin * 60
    requeued = f'kueue_workload_requeued_changed_seconds{{{name}, active="true", requeued="True"}}'
    yield requeued, opens, opens + 15, opens * 60
    flex = 'job="kube-state-metrics", namespace="team-nlp", workload="flex", active="true"'
    yield f"kueue_workload_created_seconds{{{flex}}}", begin, begin + 540, begin * 60
    reserved = f'kueue_workload_quota_reserved_changed_seconds{{{flex}, reserved="True"}}'
    yield reserved, begin, begin + 540, begin * 60


def _volumes() -> Parts:
    """A file system that fills to 80 %, and the image of a model, which is full from the start."""
    for claim, first, last in (("checkpoints", 40, 80), ("model", 100, 100)):
        of = f'job="kubelet", namespace="team-nlp", persistentvolumeclaim="{claim}", node="sys-0"'

        yield f"kubelet_volume_stats_used_bytes{{{of}}}", 0, END, _filling(first, last)
        yield f"kubelet_volume_stats_capacity_bytes{{{of}}}", 0, END, 100
        yield f"kubelet_volume_stats_available_bytes{{{of}}}", 0, END, _filling(100 - first, 100 - last)
    of = 'job="kube-state-metrics", namespace="team-nlp", persistentvolumeclaim="model"'
    yield f'kube_persistentvolumeclaim_access_mode{{{of}, access_mode="ReadOnlyMany"}}', 0, END, 1


def _ledger() -> Parts:
    """Replaced once a week; cost grows by day; a month's budget is used to 45 %."""
    state = 'job="kube-state-metrics", namespace="trainstack-accounting", deployment="gpu-ledger"'
    yield f"kube_deployment_spec_replicas{{{state}}}", 0, END, 1
    for week in range(5):
        begin, end = week * 7 * DAY + 10, (week + 1) * 7 * DAY
        pod = f'job="gpu-ledger", pod="ledger-{week}"'
        yield f"up{{{pod}}}", begin, end, 1
        seen = f'trainstack_ledger_seen_timestamp_seconds{{{pod}, team="nlp"}}'
        yield seen, begin, end, lambda at: at * 60
        conflicts = f'{pod}, exported_namespace="team-nlp", reason="409"'
        yield f"trainstack_ledger_write_failures_total{{{conflicts}}}", begin + 600, end, 1
        for team in TEAMS:
            cost = f'trainstack_gpu_cost_usd_total{{{pod}, team="{team}", project="p", pool="h100"}}'
            yield cost, begin, end, _cost(team, begin)
            budget = f'trainstack_budget_used_ratio{{{pod}, team="{team}"}}'
            yield budget, begin, end, lambda at: 0.45 * (at // 360) * 360 / DAYS / DAY
    idle = 'job="idle", namespace="trainstack-idle"'
    for day in range(DAYS):
        notebook = f'{idle}, exported_namespace="team-nlp", exported_pod="notebook", owner="ada"'
        yield f"trainstack_idle_gpus{{{notebook}}}", day * DAY + 800, day * DAY + 820, 1
    yield f"trainstack_idle_blind{{{idle}}}", 0, END, lambda at: float(at % (7 * DAY) < 10)
    yield f"trainstack_checkpoint_interval_seconds{{{idle}}}", 0, END, 3600
    age = f'trainstack_checkpoint_age_seconds{{{idle}, exported_namespace="team-nlp", holder="llm"}}'
    yield age, 0, END, lambda at: 60 * (at % 90)


def _count(begin: int) -> Callable[[int], float]:
    """A counter that grows twice a day."""
    return lambda at: (at - begin) // 720


def _filling(first: int, last: int) -> Callable[[int], float]:
    return lambda at: first + (last - first) * (at // DAY) // DAYS


def _cost(team: str, begin: int) -> Callable[[int], float]:
    return lambda at: _spent(team, at) - _spent(team, begin)


def _spent(team: str, at: int) -> float:
    """Dollars: by day, on two days of a week twice as many. The new team begins on its own day."""
    days, rest = divmod(max(0, at - _NEW_FROM) if team == "new" else at, DAY)
    share = min(max(rest - 480, 0), 720) // 30 / 24
    double = sum(day % 7 in (2, 4) for day in range(days))
    return round(120 * (days + double + share * (1 + (days % 7 in (2, 4)))), 2)


def _monitoring() -> Parts:
    prometheus = 'job="monitoring-prometheus"'
    yield f"up{{{prometheus}}}", 0, END, 1
    yield f'prometheus_rule_evaluation_failures_total{{{prometheus}, rule_group="execution"}}', 0, END, 0
    yield f"prometheus_target_scrapes_exceeded_sample_limit_total{{{prometheus}}}", 0, END, 0
    yield f'prometheus_rule_group_interval_seconds{{{prometheus}, rule_group="execution"}}', 0, END, 30
    yield f'prometheus_rule_group_last_duration_seconds{{{prometheus}, rule_group="execution"}}', 0, END, 0.2
    pod = 'namespace="monitoring", pod="p-0", container="prometheus"'
    memory = f'container_memory_working_set_bytes{{job="kubelet", {pod}}}'
    yield memory, 0, END, lambda at: 1500 + 1000 * (at % DAY // 60) / 24
    of = f'job="kube-state-metrics", {pod}'
    yield f'kube_pod_container_resource_limits{{{of}, resource="memory"}}', 0, END, 3000
    yield f"kube_pod_container_status_restarts_total{{{of}}}", 0, END, lambda at: float(at > _UPGRADE[0])
