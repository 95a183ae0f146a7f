"""Alertmanager's configuration: routes of alerts to the receivers of a cloud."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import pulumi

from components.kubernetes.monitoring.receivers import ReceiverArgs, body, page_name

PLATFORM = "platform"
"""The receiver of alerts without a team, and of teams without a receiver."""
UNSENT = "unsent"
"""The receiver of alerts that only dashboards show."""


class RouteArgs(TypedDict):
    """A team that is notified of its own alerts."""

    name: str
    """The team's own name, in the metrics of the ledger."""
    namespace: str
    """The team's namespace, `team-...`: other metrics have the rest of it as the label `team`."""
    receiver: Mapping[str, pulumi.Input[Any]]
    """A receiver of Alertmanager without its name."""


def config(
    platform: Mapping[str, Any], teams: Sequence[RouteArgs], pages: Sequence[ReceiverArgs] = ()
) -> dict[str, Any]:
    """The configuration (Alertmanager 0.34).

    One message contains what a team's alerts of one kind have in common. A firing alert is repeated twice a
    day, `Watchdog` once. Critical alerts of a team are sent to the platform, too. Of the chart's own alerts,
    those of severity `info` or `none` are for dashboards. `pages` get alerts of their severities in addition.
    """
    mailed: list[dict[str, Any]] = [
        {"receiver": PLATFORM, "matchers": ['severity="critical"', 'team!=""'], "continue": True},
        *(
            {"receiver": _receiver(team), "matchers": [_of(team["namespace"], team["name"])]}
            for team in teams
        ),
    ]
    if pages:
        # One route for all mail: routes that go on leave the default receiver out.
        mailed = [*(_paged(one) for one in pages), {"receiver": PLATFORM, "routes": mailed}]
    return {
        "route": {
            "receiver": PLATFORM,
            "group_by": ["alertname", "team"],
            "group_wait": "30s",
            "group_interval": "5m",
            "repeat_interval": "12h",
            "routes": [
                {"receiver": PLATFORM, "matchers": ['alertname="Watchdog"'], "repeat_interval": "1d"},
                {"receiver": UNSENT, "matchers": ['severity=~"info|none"', 'layer=""']},
                *mailed,
            ],
        },
        # A critical alert makes the warning before it redundant.
        "inhibit_rules": [
            {
                "source_matchers": [f'alertname="{worse}"'],
                "target_matchers": [f'alertname="{milder}"'],
                "equal": list(equal),
            }
            for worse, milder, equal in (
                ("QueueWaitAboveTwoHours", "QueueWaitAboveTarget", ("namespace",)),
                ("VolumeAlmostFull", "VolumeFillingUp", ("namespace", "persistentvolumeclaim")),
            )
        ],
        "receivers": [
            {"name": PLATFORM, **platform},
            {"name": UNSENT},
            *({"name": _receiver(team), **team["receiver"]} for team in teams),
            *(body(one) for one in pages),
        ],
    }


def _receiver(team: RouteArgs) -> str:
    return team["namespace"]


def _paged(receiver: ReceiverArgs) -> dict[str, Any]:
    """Alerts of the receiver's severities, which are mailed, too."""
    matchers = [f'severity=~"{"|".join(receiver["severities"])}"']
    if "team" in receiver:
        matchers.append(_of(receiver["team"]["namespace"], receiver["team"]["name"]))
    by = ["alertname", "team", "severity"]
    return {"receiver": page_name(receiver), "matchers": matchers, "group_by": by, "continue": True}


def _of(namespace: str, name: str) -> str:
    """The matcher of the alerts of a team."""
    names = dict.fromkeys((namespace.removeprefix("team-"), namespace, name))
    # Quoted twice: for the expression, then for the matcher's string.
    expression = "|".join(re.escape(name) for name in names).replace("\\", "\\\\").replace('"', '\\"')
    return f'team=~"{expression}"'
