"""Invalid receivers of alerts and addresses of runbooks, as `broken_specs`."""

from typing import Any

_AT = "layout.monitoring"
_LINK = "https://hooks.slack.com/services/T0/B0/x"
_CHAT = {"name": "chat", "kind": "slack"}
_PAGER = {"name": "oncall", "kind": "pagerduty"}
_RECEIVERS: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "a credential of a pager": ([{**_PAGER, "key": "a" * 32}], "[0].key", "string-pattern-mismatch"),
    "a chat's address in the file": ([{**_CHAT, "url": _LINK}], "[0].url", "unknown-key"),
    "a chat's address as a key": ([{**_CHAT, "key": _LINK}], "[0].key", "string-pattern-mismatch"),
    "a pager that no alert reaches": ([{**_PAGER, "severities": []}], "[0].severities", "too-short"),
    "two pagers of one name": ([_PAGER, _PAGER], "[1].name", "receiver-named-twice"),
    "a pager of an unknown team": ([{**_PAGER, "team": "Reserch"}], "[0].team", "unknown-team"),
    "a webhook with a region": (
        [{"name": "hook", "kind": "webhook", "region": "eu"}], "[0].region", "receiver-without-region",
    ),
    "a severity of a pager twice": (
        [{**_PAGER, "severities": ["critical", "critical"]}], "[0].severities", "severity-named-twice",
    ),
}  # fmt: skip
_ADDRESSES = ("docs/runbooks", "https://me:secret@example.com/runbooks", "javascript:alert(1)")


def _monitoring(**more: Any) -> dict[str, Any]:
    return {"kind": "in_cluster", "retention_days": 30, "storage_gib": 50, **more}


BROKEN_RECEIVERS: dict[str, tuple[Any, ...]] = {
    **{
        name: (("layout", "monitoring"), _monitoring(receivers=given), f"{_AT}.receivers{at}", code)
        for name, (given, at, code) in _RECEIVERS.items()
    },
    **{
        f"runbooks at {address}": (
            ("layout", "monitoring"),
            _monitoring(runbooks_url=address),
            f"{_AT}.runbooks_url",
            "string-pattern-mismatch",
        )
        for address in _ADDRESSES
    },
}
