"""The table, continued: what stacks with a cluster need that others do not have, and the other way round."""

from tests.stacks.parity.model import Outcome, Refused

COMMON: dict[str, dict[str, Outcome]] = {
    "budget.over_budget": {
        cloud: Refused("budget.over_budget", "stop", "budget.over_budget", r"teams\[\]\.over_budget")
        for cloud in ("aws", "gcp")
    },
    "tracking": {
        cloud: Refused("tracking", None, "tracking", "^Add it: The MLflow server") for cloud in ("aws", "gcp")
    },
}
