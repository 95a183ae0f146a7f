"""Who is told of an alert: Alertmanager's configuration, from the receivers that a cloud offers."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import pulumi

PLATFORM = "platform"
"""The receiver of everything that is no team's, and of teams that named nobody."""
UNSENT = "unsent"
"""The receiver of what dashboards alone show."""


class RouteArgs(TypedDict):
    """A team that is told of its own alerts."""

    name: str
    """The team's own name: metrics of the ledger carry it."""
    namespace: str
    """The team's namespace, `team-...`: other metrics carry what follows, as the label `team`."""
    receiver: Mapping[str, pulumi.Input[Any]]
    """How it is told: a receiver of Alertmanager without its name."""


def config(platform: Mapping[str, Any], teams: Sequence[RouteArgs]) -> dict[str, Any]:
    """The configuration (Alertmanager 0.34).

    One message holds what a team's alerts of one kind have in common. An alert that goes on is repeated twice
    a day, `Watchdog` once. What is critical for a team is told to the platform, too. Of the chart's own
    alerts, those of severity `info` or `none` are for dashboards.
    """
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
                {"receiver": PLATFORM, "matchers": ['severity="critical"', 'team!=""'], "continue": True},
                *({"receiver": _receiver(team), "matchers": [_of(team)]} for team in teams),
            ],
        },
        # What is critical says the same as the warning before it.
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
        ],
    }


def _receiver(team: RouteArgs) -> str:
    return team["namespace"]


def _of(team: RouteArgs) -> str:
    short = team["namespace"].removeprefix("team-")
    names = dict.fromkeys((short, team["namespace"], team["name"]))
    # Quoted twice: for the expression, then for the matcher's string.
    expression = "|".join(re.escape(name) for name in names).replace("\\", "\\\\").replace('"', '\\"')
    return f'team=~"{expression}"'
