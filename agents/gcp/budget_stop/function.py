"""Cloud Run function: stops or reports the workloads of a used-up budget, and records each action.

Cloud Billing publishes the costs several times a day, independent of thresholds; no API returns them. So a
message is the only source of the figures, and the next one covers workloads that started since. Pub/Sub may
deliver a message twice, late, or after a newer one: the function is idempotent, names of records do not
change within a day, and messages about another month are ignored.
"""

import base64
import datetime
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from agents.budget_stop.decisions import STOP, Decision, SpendingBudget, decide, recorded
from agents.gcp.budget_stop import running
from agents.gcp.budget_stop.rest import GoogleApis

SETTINGS = "TRAINSTACK_BUDGETS"
"""JSON: stack, project, region, bucket, budgets (name, scope, value, over_budget), as labels have them; with
`currency` (code, per_usd) where the billing account is not in US dollars."""
_DOLLARS: Mapping[str, Any] = {"code": "USD", "per_usd": 1.0}
AUDIT = "audit"
EVENT = "budget-stop"
_MONTH = datetime.timedelta(days=32)


def handle(event: Any) -> dict[str, Any]:
    """Handle a Pub/Sub message in a CloudEvent.

    Raises the first error of a service after all other actions: the message is delivered again.
    """
    message = json.loads(base64.b64decode(event.data["message"]["data"]))
    settings = json.loads(os.environ[SETTINGS])
    google = GoogleApis(os.environ, settings["region"])
    return act(message, settings, google, datetime.datetime.now(datetime.UTC))


def act(
    message: Mapping[str, Any], settings: Mapping[str, Any], google: GoogleApis, now: datetime.datetime
) -> dict[str, Any]:
    """Stop or report the workloads of the budget if it is used up; returns the actions by name."""
    budget = spent(message, settings["budgets"], now, settings.get("currency") or _DOLLARS)
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
    _notify(news, settings["stack"])
    if failed:
        raise failed[0]
    return {"over": [budget.name], "done": done}


def spent(
    message: Mapping[str, Any],
    budgets: Sequence[Mapping[str, str]],
    now: datetime.datetime,
    currency: Mapping[str, Any] = _DOLLARS,
) -> SpendingBudget | None:
    """The budget of a message; None for one of another stack or another month.

    Source: Cloud Billing documentation, "Notification format" (schema 1.0). Raises ValueError for a currency
    other than that of the limits.
    """
    row = next((one for one in budgets if one["name"] == message.get("budgetDisplayName")), None)
    began = datetime.datetime.fromisoformat(str(message["costIntervalStart"]))
    if row is None or now - began > _MONTH:
        return None
    if message["currencyCode"] != currency["code"]:
        raise ValueError(f"{row['name']} is in {message['currencyCode']}, not in {currency['code']}")
    limit, cost = (float(message[key]) / currency["per_usd"] for key in ("budgetAmount", "costAmount"))
    return SpendingBudget(**row, limit_usd=limit, spent_usd=cost)


def _carried_out(decision: Decision, google: GoogleApis) -> str:
    if decision.action != STOP:
        return "left running"
    return "stopped" if running.end(google, decision.running) else "had ended"


def _keep(record: Mapping[str, Any], bucket: str, google: GoogleApis) -> bool:
    """Write the record to the log and to an object of its own; returns whether it is new today."""
    _log({"severity": "NOTICE", "event": f"{EVENT}-record", "record": record})
    day, name = record["time"][:10], "-".join(record["arn"].split("/")[3:])
    key = f"{AUDIT}/{day}/{name}-{record['action'].replace(' ', '-')}.json"
    return google.keep(bucket, key, json.dumps(record, sort_keys=True))


def _notify(news: Sequence[Mapping[str, Any]], stack: str) -> None:
    """Log one line that a policy of Cloud Monitoring mails; those left running are reported once a day."""
    if not news:
        return
    lines = [
        f"{one['kind']} {one['name']}: {one['action']}, {one['outcome']}. {one['reason']}" for one in news
    ]
    subject = f"{stack}: a budget is used up"
    _log({"severity": "WARNING", "event": EVENT, "subject": subject, "text": "\n".join(lines)})


def _log(line: Mapping[str, Any]) -> None:
    """Log one line of JSON, which Cloud Logging parses. Source: Cloud Run documentation, "Write logs"."""
    sys.stdout.write(f"{json.dumps(line, sort_keys=True)}\n")
    sys.stdout.flush()
