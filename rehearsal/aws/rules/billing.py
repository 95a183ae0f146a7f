"""Budgets and anomaly detection."""

import re
from collections.abc import Iterator

from rehearsal.aws import facts
from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import items, named, text
from rehearsal.core.model import Properties
from rehearsal.core.properties import each, known
from rehearsal.core.rules.model import Violation

_BUDGET = "aws:budgets/budget:Budget"
_MONITOR = "aws:costexplorer/anomalyMonitor:AnomalyMonitor"
_SUBSCRIPTION = "aws:costexplorer/anomalySubscription:AnomalySubscription"
_NOTICE = "botocore 1.44.5 budgets/2016-10-20 Notification"
_API = "botocore 1.44.5 budgets/2016-10-20 Budget"
_DOC = "pulumi-aws 7.51.1 docstring of aws.budgets.Budget"
_MONITORS = "botocore 1.44.5 ce/2017-10-25 AnomalyMonitor"
_SUBSCRIPTIONS = "botocore 1.44.5 ce/2017-10-25 AnomalySubscription"
_TOPICS = 1
# An account has at most one monitor over the dimension SERVICE.
_DIMENSION_LIMIT = 1
_SPECIFIED = ("TAG", "COST_CATEGORY")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")


@BOOK.rule("AWS-BUD-001", _BUDGET, source=_API)
def amount_is_positive(inputs: Properties) -> Iterator[Violation]:
    """A budget's limit is an amount above 0."""
    amount = inputs.get("limitAmount")
    try:
        if known(amount) and float(str(amount)) <= 0:
            yield Violation("limitAmount", f"it must be above 0, not {amount}")
    except ValueError:
        yield Violation("limitAmount", f"{amount} is not an amount", "Write it like 1200.0.")


@BOOK.rule("AWS-BUD-003", _BUDGET, source=_NOTICE)
def subscriber_count(inputs: Properties) -> Iterator[Violation]:
    """A notification has at most 10 email addresses and one SNS topic."""
    emails = int(facts.catalog().limits["budget_emails"].most)
    for path, notice in items(inputs, "notifications"):
        for name, most in (("subscriberEmailAddresses", emails), ("subscriberSnsTopicArns", _TOPICS)):
            people = notice.get(name)
            if isinstance(people, list) and len(people) > most:
                yield Violation(
                    f"{path}.{name}", f"{len(people)} subscribers, but at most {most} are allowed"
                )


@BOOK.rule("AWS-BUD-008", _BUDGET, source=f"{_DOC} (Example Usage: cost filter TagKeyValue)")
def tag_filter_form(inputs: Properties) -> Iterator[Violation]:
    """A filter by tag has the form key$value."""
    for path, one in items(inputs, "costFilters"):
        for index, value in enumerate(one.get("values") or [] if one.get("name") == "TagKeyValue" else []):
            if isinstance(value, str) and "$" not in value:
                yield Violation(
                    f"{path}.values[{index}]", f"{value} is not a tag filter", "Write it as user:Key$Value."
                )


@BOOK.rule("AWS-CE-001", _MONITOR, source=_MONITORS)
def managed_monitor_has_a_dimension(inputs: Properties) -> Iterator[Violation]:
    """A DIMENSIONAL monitor needs its dimension; a CUSTOM one has none."""
    kind = inputs.get("monitorType")
    if kind == "DIMENSIONAL" and "monitorDimension" not in inputs:
        yield Violation("monitorDimension", "monitor type DIMENSIONAL needs it", "Use SERVICE.")
    if kind == "CUSTOM" and "monitorDimension" in inputs:
        yield Violation("monitorDimension", "monitor type CUSTOM takes none")


@BOOK.rule("AWS-CE-002", _MONITOR, source=_MONITORS)
def monitor_specification(inputs: Properties) -> Iterator[Violation]:
    """Monitors that are CUSTOM or over a tag or cost category need a specification; others take none."""
    kind, dimension, path = inputs.get("monitorType"), inputs.get("monitorDimension"), "monitorSpecification"
    if kind == "CUSTOM" or (kind == "DIMENSIONAL" and dimension in _SPECIFIED):
        if path not in inputs:
            yield Violation(path, f"a {kind} monitor{f' over {dimension}' if dimension else ''} needs it")
    elif kind == "DIMENSIONAL" and known(dimension) and path in inputs:
        yield Violation(path, f"a monitor over {dimension} takes none")


@BOOK.rule_around(
    "AWS-CE-003", _MONITOR, source="aws-cloudformation/cloudformation-coverage-roadmap issue 2515"
)
def one_managed_monitor(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """An account has one DIMENSIONAL monitor over its services."""
    dimension = inputs.get("monitorDimension")
    if inputs.get("monitorType") != "DIMENSIONAL" or dimension != "SERVICE" or site.preview:
        return
    others = [
        one
        for one in site.others("costexplorer/anomalyMonitor:AnomalyMonitor")
        if one.outputs.get("monitorDimension") == dimension
    ]
    if len(others) >= _DIMENSION_LIMIT:
        yield Violation(
            "monitorType",
            "Limit exceeded on dimensional spend monitor creation",
            f"{named(others[0])} is the account's one; use a CUSTOM monitor.",
            "ValidationException",
        )


@BOOK.rule("AWS-CE-004", _SUBSCRIPTION, source=_SUBSCRIPTIONS)
def topics_are_notified_immediately(inputs: Properties) -> Iterator[Violation]:
    """An SNS topic is notified IMMEDIATE, an email address DAILY or WEEKLY."""
    frequency = inputs.get("frequency")
    for path, one in items(inputs, "subscribers"):
        if one.get("type") == "SNS" and known(frequency) and frequency != "IMMEDIATE":
            yield Violation(f"{path}.type", f"SNS needs frequency IMMEDIATE, not {frequency}")
        if one.get("type") == "EMAIL" and frequency == "IMMEDIATE":
            yield Violation(f"{path}.type", "EMAIL needs frequency DAILY or WEEKLY")


@BOOK.rule("AWS-CE-005", _SUBSCRIPTION, source="botocore 1.44.5 ce/2017-10-25 Subscriber")
def address_of_the_type(inputs: Properties) -> Iterator[Violation]:
    """A subscriber's address is an email address or the ARN of a topic, by its type."""
    for path, one in items(inputs, "subscribers"):
        address = text(one.get("address"))
        email = bool(address and _EMAIL.fullmatch(address))
        topic = bool(address and re.match(r"arn:aws[a-z-]*:sns:", address))
        if address and (
            (one.get("type") == "EMAIL" and not email) or (one.get("type") == "SNS" and not topic)
        ):
            yield Violation(f"{path}.address", f"{address} is not an address of type {one['type']}")


@BOOK.rule("AWS-CE-006", _SUBSCRIPTION, source=_SUBSCRIPTIONS)
def threshold_values(inputs: Properties) -> Iterator[Violation]:
    """A threshold compares with GREATER_THAN_OR_EQUAL and a number from 0 to 10,000,000,000."""
    base = "thresholdExpression"
    for where in (f"{base}.dimension", f"{base}.ands[].dimension", f"{base}.ors[].dimension"):
        for path, dimension in each(inputs, where):
            options, values = dimension.get("matchOptions"), dimension.get("values")
            if (
                isinstance(options, list)
                and all(map(known, options))
                and options != ["GREATER_THAN_OR_EQUAL"]
            ):
                yield Violation(f"{path}.matchOptions", "it must be GREATER_THAN_OR_EQUAL")
            for index, value in enumerate(values if isinstance(values, list) else []):
                if isinstance(value, str) and not _in_range(value):
                    yield Violation(
                        f"{path}.values[{index}]", f"{value} is not a number from 0 to 10000000000"
                    )


def _in_range(value: str) -> bool:
    try:
        return 0 <= float(value) <= 10_000_000_000
    except ValueError:
        return False
