"""What costs money and serves nobody."""

from collections.abc import Iterator

from policies.catalogue import CATALOGUE, About, Violation
from policies.resource import Resource
from policies.stack import Stack


@CATALOGUE.rule_around(
    About(
        "MLS-COST-07",
        "medium",
        ("aws:cloudwatch/logGroup:LogGroup",),
        "Without a retention, lines are kept and billed for ever; with a short one, the incident is lost.",
        "Set retentionInDays.",
        ("CKV_AWS_66",),
    )
)
def logs_end(group: Resource, stack: Stack) -> Iterator[Violation]:
    """Log groups keep their lines long enough to look into an incident, and not for ever."""
    days = group.props.get("retentionInDays") or 0
    least, most = stack.settings.least_log_retention_days, stack.settings.log_retention_days
    if days == 0:
        yield Violation("lines are never deleted", "retentionInDays", f"Set it to {most} days or fewer.")
    elif not least <= days <= most:
        yield Violation(f"{days} days is not between {least} and {most}", "retentionInDays")
