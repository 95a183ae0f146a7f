"""What a rule judges by where teams differ: amounts, days, thresholds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The values that hold where nobody says anything else; each is a decision, with its reason."""

    alert_at_percent: float = 80.0
    """A budget warns at this share of its limit or earlier: a month's last fifth is six days to react."""
    max_usd_per_hour: float = 250.0
    """Of all pools at their maximum size, by list price: about eight machines of eight A100s."""
    log_retention_days: int = 365
    """Logs are kept no longer than this, and never without end."""
    least_log_retention_days: int = 7
    """And long enough to look into an incident of last week."""
