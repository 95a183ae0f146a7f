"""The part of the table about monitoring and alert receivers."""

from tests.stacks.parity.rows import Row, both

_WATCHED = {"kind": "in_cluster", "retention_days": 45, "storage_gib": 200, "memory_gib": 24}

COMMON: dict[str, Row] = dict(
    [
        both("cluster", "layout.monitoring=in_cluster", _WATCHED, r'retention: "30d" -> "45d"'),
        both(
            "cluster", "layout.monitoring=in_cluster.retention_days", _WATCHED, r'retention: "30d" -> "45d"'
        ),
        both("cluster", "layout.monitoring=in_cluster.storage_gib", _WATCHED, r'storage: "50Gi" -> "200Gi"'),
        both("cluster", "layout.monitoring=in_cluster.memory_gib", _WATCHED, r'memory: ".*" -> "24Gi"'),
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
