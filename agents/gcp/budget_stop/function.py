"""The function that a budget wakes: it lets `decisions` decide, acts and records.

Cloud Billing publishes what was spent several times a day, whatever the thresholds; no API tells it at other
times. So a message is the only source of the figures, and the next one finds what has started since. Pub/Sub
may deliver a message twice, late, or after a newer one: acting twice does what is left to do, records have
names that do not change within a day, and a message about another month is left alone.
"""

import base64
import datetime
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from agents.budget_stop.decisions import STOP, Budget, Decision, decide, recorded
from agents.gcp.budget_stop import running
from agents.gcp.budget_stop.rest import Google

SETTINGS = "TRAINSTACK_BUDGETS"
"""JSON: stack, project, region, bucket, budgets (name, scope, value, over_budget), as labels have them."""
AUDIT = "audit"
EVENT = "budget-stop"
_MONTH = datetime.timedelta(days=32)


def handle(event: Any) -> dict[str, Any]:
    """Answer a message of Pub/Sub, as a CloudEvent carries it.

    Raises the first error of a service after everything else was tried: the message is delivered again.
    """
    told = json.loads(base64.b64decode(event.data["message"]["data"]))
    settings = json.loads(os.environ[SETTINGS])
    google = Google(os.environ, settings["region"])
    return act(told, settings, google, datetime.datetime.now(datetime.UTC))


def act(
    told: Mapping[str, Any], settings: Mapping[str, Any], google: Google, now: datetime.datetime
) -> dict[str, Any]:
    """Stop, or tell, what the budget is about if it is used up; returns what was done, by name."""
    budget = spent(told, settings["budgets"], now)
    if budget is None or not budget.used_up:
        return {"over": [], "done": []}
    place = settings["project"], settings["region"]
    things = running.everything(google, *place, settings["stack"])
    done: list[dict[str, Any]] = []
    news: list[dict[str, Any]] = []
    failed: list[Exception] = []
    for decision in decide([budget], things):
        try:
            outcome = _carried_out(decision, google)
        except Exception as error:
            outcome = f"failed: {error}"
            failed.append(error)
        record = recorded(decision, outcome, now)
        done.append(record)
        if _keep(record, settings["bucket"], google):
            news.append(record)
    _tell(news, settings["stack"])
    if failed:
        raise failed[0]
    return {"over": [budget.name], "done": done}


def spent(
    told: Mapping[str, Any], budgets: Sequence[Mapping[str, str]], now: datetime.datetime
) -> Budget | None:
    """The budget that a message is about; None for another stack's, and for another month's.

    Source: Cloud Billing documentation, "Notification format" (schema 1.0). Raises ValueError for a currency
    that the limits are not in: euros are no dollars.
    """
    row = next((one for one in budgets if one["name"] == told.get("budgetDisplayName")), None)
    began = datetime.datetime.fromisoformat(str(told["costIntervalStart"]))
    if row is None or now - began > _MONTH:
        return None
    if told["currencyCode"] != "USD":
        raise ValueError(f"{row['name']} is in {told['currencyCode']}, not in USD")
    return Budget(**row, limit_usd=float(told["budgetAmount"]), spent_usd=float(told["costAmount"]))


def _carried_out(decision: Decision, google: Google) -> str:
    if decision.action != STOP:
        return "left running"
    return "stopped" if running.end(google, decision.running) else "had ended"


def _keep(record: Mapping[str, Any], bucket: str, google: Google) -> bool:
    """In the log, and as an object of its own; whether that is new today."""
    _say({"severity": "NOTICE", "event": f"{EVENT}-record", "record": record})
    day, name = record["time"][:10], "-".join(record["arn"].split("/")[3:])
    key = f"{AUDIT}/{day}/{name}-{record['action'].replace(' ', '-')}.json"
    return google.keep(bucket, key, json.dumps(record, sort_keys=True))


def _tell(news: Sequence[Mapping[str, Any]], stack: str) -> None:
    """One line that a policy of Cloud Monitoring mails; what is left running is told once a day."""
    if not news:
        return
    lines = [
        f"{one['kind']} {one['name']}: {one['action']}, {one['outcome']}. {one['reason']}" for one in news
    ]
    subject = f"{stack}: a budget is used up"
    _say({"severity": "WARNING", "event": EVENT, "subject": subject, "text": "\n".join(lines)})


def _say(line: Mapping[str, Any]) -> None:
    """One line of JSON, which Cloud Logging takes apart. Source: Cloud Run documentation, "Write logs"."""
    sys.stdout.write(f"{json.dumps(line, sort_keys=True)}\n")
    sys.stdout.flush()
