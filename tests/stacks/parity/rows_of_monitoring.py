"""The part of the table about monitoring and alert receivers."""

from tests.stacks.parity.rows import Row, both

_PAGER = {
    "name": "oncall",
    "kind": "pagerduty",
    "key": "of-pager",
    "severities": ["critical", "warning"],
    "team": "Research",
    "region": "eu",
}
_WATCHED = {
    "kind": "in_cluster",
    "retention_days": 45,
    "storage_gib": 200,
    "memory_gib": 24,
    "runbooks_url": "https://runbooks.example.com/",
    "receivers": [_PAGER],
}
_RECEIVER = "layout.monitoring=in_cluster.receivers[]"

COMMON: dict[str, Row] = dict(
    [
        both("cluster", "layout.monitoring=in_cluster", _WATCHED, r'retention: "30d" -> "45d"'),
        both(
            "cluster", "layout.monitoring=in_cluster.retention_days", _WATCHED, r'retention: "30d" -> "45d"'
        ),
        both("cluster", "layout.monitoring=in_cluster.storage_gib", _WATCHED, r'storage: "50Gi" -> "200Gi"'),
        both("cluster", "layout.monitoring=in_cluster.memory_gib", _WATCHED, r'memory: ".*" -> "24Gi"'),
        both(
            "cluster",
            "layout.monitoring=in_cluster.runbooks_url",
            _WATCHED,
            r"https://runbooks\.example\.com/",
        ),
        both("cluster", f"{_RECEIVER}.name", _WATCHED, r"page-oncall", at="layout.monitoring"),
        both("cluster", f"{_RECEIVER}.key", _WATCHED, r"alert-receivers/of-pager", at="layout.monitoring"),
        both("cluster", f"{_RECEIVER}.severities", _WATCHED, r"critical\|warning", at="layout.monitoring"),
        both(
            "cluster",
            f"{_RECEIVER}.team",
            _WATCHED,
            r"routes\[2\]\.matchers\[1\].*-> .*research",
            at="layout.monitoring",
        ),
        both("cluster", f"{_RECEIVER}.region", _WATCHED, r"events\.eu\.pagerduty", at="layout.monitoring"),
        both(
            "no gate",
            "layout.monitoring=none",
            {"kind": "none"},
            r"^- Monitoring monitoring$",
            also={"layout.idle_gpus": None},
        ),
        both(
            "work",
            "teams[].alert_emails",
            ["research@example.com"],
            r"^\+ (TopicSubscription|AlertPolicy) team-research-alerts",
        ),
    ]
)
