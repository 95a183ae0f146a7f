"""SNS topics, and the retention and keys of log groups."""

import re
from collections.abc import Iterator

from rehearsal.aws import facts
from rehearsal.aws.rules.book import BOOK
from rehearsal.aws.rules.reading import number, text
from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation

_TOPIC, _SUBSCRIPTION = "aws:sns/topic:Topic", "aws:sns/topicSubscription:TopicSubscription"
_CREATE = "botocore 1.44.5 sns/2010-03-31 CreateTopicInput"
_SUBSCRIBE = "botocore 1.44.5 sns/2010-03-31 SubscribeInput"
_ENDPOINTS = {
    "http": re.compile(r"http://.+"),
    "https": re.compile(r"https://.+"),
    "email": re.compile(r"[^@\s]+@[^@\s]+"),
    "email-json": re.compile(r"[^@\s]+@[^@\s]+"),
}


@BOOK.rule("AWS-SNS-002", _TOPIC, source=_CREATE)
def fifo_suffix(inputs: Properties) -> Iterator[Violation]:
    """The names of FIFO topics, and no others, end in .fifo."""
    name, fifo = text(inputs.get("name")), inputs.get("fifoTopic", False)
    if name is not None and isinstance(fifo, bool) and fifo != name.endswith(".fifo"):
        yield Violation("name", f"{name} does not go with fifoTopic = {str(fifo).lower()}")


@BOOK.rule("AWS-SNS-003", _SUBSCRIPTION, source=_SUBSCRIBE)
def endpoint_of_the_protocol(inputs: Properties) -> Iterator[Violation]:
    """A subscription's endpoint is an URL or email address, by its protocol."""
    form, endpoint = _ENDPOINTS.get(str(inputs.get("protocol"))), text(inputs.get("endpoint"))
    if form and endpoint is not None and not form.fullmatch(endpoint):
        yield Violation("endpoint", f"{endpoint} is not an endpoint of protocol {inputs['protocol']}")


@BOOK.rule(
    "AWS-LIM-113",
    "aws:cloudwatch/logGroup:LogGroup",
    source="the catalog (log_retention_days); pulumi-aws 7.51.1 docstring of aws.cloudwatch.LogGroup (0)",
)
def log_retention(inputs: Properties) -> Iterator[Violation]:
    """A log group keeps its events forever (0), or for one of the periods that the catalog states."""
    days = number(inputs.get("retentionInDays"))
    limit = facts.catalog().limits["log_retention_days"]
    for problem in limit.problems("retentionInDays", days) if days else ():
        yield Violation("retentionInDays", f"{days:g}: {problem.rule}", problem.fix)
