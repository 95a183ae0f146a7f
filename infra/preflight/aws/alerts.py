"""Whether the alerts of scheduled validations reach the people who are to get them."""

import re
from collections.abc import Iterator

from infra.preflight.answers import Answer, State
from infra.preflight.aws.account import Account

_CHECK = "alert-mail"
# The engine ends the name of a resource in seven hexadecimal digits.
_TOPIC = r"{stack}-training-alerts-topic-[0-9a-f]{{7}}"


def mail(account: Account) -> Iterator[Answer]:
    """Every address has confirmed its subscription: SNS sends no other mail, and drops it after 48 hours.

    Sources: "Amazon SNS automatic deletion of unconfirmed subscriptions" (AWS What's New, 2023-05-10); of a
    subscription that is not confirmed, ListSubscriptionsByTopic tells no ARN.
    """
    if not account.spec.smoke.schedule:
        return
    name = re.compile(_TOPIC.format(stack=re.escape(account.spec.name)))
    topics = [row["TopicArn"] for row in account.pages("sns", "list_topics", "Topics")]
    found = [arn for arn in topics if name.fullmatch(arn.rpartition(":")[2])]
    wanted = account.spec.budget.alert_emails
    if not found:
        said = f"AWS will mail {', '.join(wanted)} once when the stack is made, and ask for a confirmation"
        yield Answer(_CHECK, State.NOTE, said, "Confirm within 48 hours; then ask again.")
        return
    heard = {
        row["Endpoint"]
        for arn in found
        for row in account.pages("sns", "list_subscriptions_by_topic", "Subscriptions", TopicArn=arn)
        if row["SubscriptionArn"].startswith("arn:")
    }
    for address in wanted:
        if address not in heard:
            fix = (
                "Open the link in the mail from AWS. After 48 hours it is void: "
                f"`trainstack refresh -s {account.spec.name}`, then `trainstack up`, sends another."
            )
            yield Answer(_CHECK, State.SHORT, f"{address} has not confirmed to get alerts", fix)
    if heard.issuperset(wanted):
        yield Answer(_CHECK, State.READY, f"{', '.join(wanted)} get the alerts of scheduled validations")
