"""Logs and alerts.

Shapes: google/services/{logging,monitoring} of terraform-provider-google.
"""

from policies.sources.live.gcp.assets import asset, assets, end_of, number, part, short, switch
from policies.sources.live.gcp.project import above
from policies.sources.live.mapping import Each, LiveKind, One, Reader, Shape, View, same
from policies.sources.live.queries import ApiQuery

_BUCKET, _SINK = "logging.googleapis.com/LogBucket", "logging.googleapis.com/LogSink"
_ALERT = "monitoring.googleapis.com/AlertPolicy"
_FIXED = "_Required"
"""Name of a bucket and a sink that cannot be changed (Cloud Logging, "Routing and storage overview")."""
_GIVEN = "_Default"
"""Name of those that every project, folder and organization has, and that can be changed."""


def _above(level: str) -> ApiQuery:
    return ApiQuery(
        "logging", f"{level}s.sinks.list", "sinks", of=above(level), by={"parent": "name"},
        right="logging.sinks.list",
    )  # fmt: skip


QUERIES = (*map(assets, (_BUCKET, _SINK, _ALERT)), _above("folder"), _above("organization"))

_SINK_PROPS: Shape = {
    **same("description", "destination", "filter", "name", "writerIdentity"),
    "disabled": switch("disabled"),
}


def _changeable(view: View) -> bool:
    return bool(view.at("name") != _FIXED)


def _sink_above(level: str, token: str, whose: dict[str, Reader]) -> LiveKind:
    return LiveKind(
        f"gcp:logging/{token[0].lower()}{token[1:]}:{token}",
        f"logging.{level}s.sinks.list",
        "{asked.parent}/sinks/{name}",
        {**_SINK_PROPS, "includeChildren": switch("includeChildren"), **whose},
        name="{name}",
        when=_changeable,
        made=lambda view: view.at("name") == _GIVEN,
        regionless=True,
    )


KINDS = (
    asset(
        "gcp:logging/projectBucketConfig:ProjectBucketConfig",
        _BUCKET,
        {
            "bucketId": short,
            **same("description", "lifecycleState"),
            "location": part("locations"),
            "locked": switch("locked"),
            "retentionDays": number("retentionDays"),
        },
        labels="",
        when=lambda view: short(view) != _FIXED and view.at("lifecycleState") != "DELETE_REQUESTED",
        made=lambda view: short(view) == _GIVEN,
    ),
    asset(
        "gcp:logging/projectSink:ProjectSink",
        _SINK,
        _SINK_PROPS,
        labels="",
        when=_changeable,
        made=lambda view: view.at("name") == _GIVEN,
    ),
    _sink_above("folder", "FolderSink", {"folder": lambda view: view.at("asked.parent")}),
    _sink_above("organization", "OrganizationSink", {"orgId": end_of("asked.parent")}),
    asset(
        "gcp:monitoring/alertPolicy:AlertPolicy",
        _ALERT,
        {
            **same("combiner", "displayName", "enabled", "notificationChannels"),
            "conditions": Each(
                "conditions",
                {
                    "conditionAbsent": One("conditionAbsent", {"filter": "filter"}),
                    "conditionMatchedLog": One("conditionMatchedLog", {"filter": "filter"}),
                    "conditionMonitoringQueryLanguage": One(
                        "conditionMonitoringQueryLanguage", {"query": "query"}
                    ),
                    "conditionPrometheusQueryLanguage": One(
                        "conditionPrometheusQueryLanguage", {"query": "query"}
                    ),
                    "conditionThreshold": One("conditionThreshold", same("comparison", "filter")),
                    "displayName": "displayName",
                },
            ),
        },
        labels="",
    ),
)
