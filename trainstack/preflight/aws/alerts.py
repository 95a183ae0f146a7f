"""The check of confirmed e-mail subscriptions to alerts of validations, monitoring, storage and teams."""

import re
from collections.abc import Iterator, Mapping, Sequence

from infra.alarms import storage as storage_alarms
from infra.naming import team_namespace
from infra.stackspec.layouts import ClusterLayout, InClusterMonitoring, SmallLayout
from infra.stackspec.stack import StackSpec
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account

_CHECK = "alert-mail"
# The engine ends the name of a resource in seven hexadecimal digits.
_ENDING = "-topic-[0-9a-f]{7}"


def mail(account: Account) -> Iterator[Answer]:
    """Every address has confirmed its subscription, which SNS deletes after 48 hours otherwise.

    Sources: "Amazon SNS automatic deletion of unconfirmed subscriptions" (AWS What's New, 2023-05-10);
    ListSubscriptionsByTopic returns no ARN of an unconfirmed subscription.
    """
    recipients = _recipients(account.spec)
    if not recipients:
        return
    topics = [row["TopicArn"] for row in account.pages("sns", "list_topics", "Topics")]
    for beginning, wanted in recipients.items():
        name = re.compile(re.escape(beginning) + _ENDING)
        yield from _confirmed(account, [arn for arn in topics if name.fullmatch(arn.split(":")[-1])], wanted)


def _recipients(spec: StackSpec) -> Mapping[str, Sequence[str]]:
    """The addresses by the prefix of their topic's name (`stacks/clouds/aws/alerting.py`)."""
    monitored = isinstance(spec.layout, ClusterLayout) and isinstance(
        spec.layout.monitoring, InClusterMonitoring
    )
    # Without a cluster, budget owners are notified of stopped jobs.
    acts = isinstance(spec.layout, SmallLayout)
    if not (monitored or acts or spec.smoke.schedule or storage_alarms.on_aws(spec)):
        return {}
    teams = [team for team in spec.teams if team.alert_emails and monitored]
    return {
        f"{spec.name}-training-alerts": spec.budget.alert_emails,
        **{f"{spec.name}-{team_namespace(team.name)}-alerts": team.alert_emails for team in teams},
    }


def _confirmed(account: Account, topics: Sequence[str], wanted: Sequence[str]) -> Iterator[Answer]:
    if not topics:
        text = f"AWS will send {', '.join(wanted)} one mail with a confirmation link at the deployment"
        yield Answer(_CHECK, State.NOTE, text, "Confirm within 48 hours; then run preflight again.")
        return
    confirmed = {
        row["Endpoint"]
        for arn in topics
        for row in account.pages("sns", "list_subscriptions_by_topic", "Subscriptions", TopicArn=arn)
        if row["SubscriptionArn"].startswith("arn:")
    }
    for address in wanted:
        if address not in confirmed:
            fix = (
                "Open the link in the mail from AWS. After 48 hours it is invalid: "
                f"`trainstack refresh -s {account.spec.name}`, then `trainstack up`, sends another."
            )
            yield Answer(_CHECK, State.SHORT, f"{address} has not confirmed its subscription to alerts", fix)
    if confirmed.issuperset(wanted):
        yield Answer(_CHECK, State.READY, f"{', '.join(wanted)} receive alerts")
