"""People hear of a worse training run only when they have confirmed that they want to."""

from typing import Any

from tests.trainstack.preflight.aws.asking import ACCOUNT, STACK, Cloud, account, asked, states
from trainstack.preflight.answers import State
from trainstack.preflight.aws import alerts

TOPIC = f"arn:aws:sns:us-east-1:{ACCOUNT}:{STACK}-training-alerts-topic-0123abc"
# Of a stack whose name begins alike.
OTHER = f"arn:aws:sns:us-east-1:{ACCOUNT}:{STACK}-two-training-alerts-topic-0123abc"
PEOPLE = ("ml-platform@example.com", "finops@example.com")


def deployed(*confirmed: str) -> Cloud:
    rows = [
        {"Endpoint": one, "SubscriptionArn": f"{TOPIC}:1" if one in confirmed else "PendingConfirmation"}
        for one in PEOPLE
    ]
    cloud = Cloud().answers("sns", "list_topics", {"Topics": [{"TopicArn": OTHER}, {"TopicArn": TOPIC}]})
    return cloud.answers("sns", "list_subscriptions_by_topic", {"Subscriptions": rows}, TopicArn=TOPIC)


def test_everybody_has_confirmed() -> None:
    assert states(asked(alerts.mail, account(deployed(*PEOPLE)))) == [State.READY]


def test_who_has_not_confirmed_is_named_with_what_to_do() -> None:
    (answer,) = asked(alerts.mail, account(deployed(PEOPLE[0])))
    assert answer.state is State.SHORT
    assert PEOPLE[1] in answer.text and PEOPLE[0] not in answer.text
    assert "48 hours" in answer.fix and f"trainstack refresh -s {STACK}" in answer.fix


def test_before_the_first_deployment_a_note_announces_the_confirmation() -> None:
    cloud = Cloud().answers("sns", "list_topics", {"Topics": [{"TopicArn": OTHER}]})
    (answer,) = asked(alerts.mail, account(cloud))
    assert answer.state is State.NOTE and PEOPLE[0] in answer.text


def test_without_alerts_no_request_is_sent() -> None:
    none: dict[str, Any] = {"layout__monitoring": {"kind": "none"}, "layout__idle_gpus": None}
    changes = {"smoke__schedule": None, **none}
    unwatched = account(Cloud(), **changes, data__shared_fs=None)
    assert asked(alerts.mail, unwatched) == []
    # Lustre has an alarm of CloudWatch, with any monitoring of the cluster.
    assert states(asked(alerts.mail, account(deployed(*PEOPLE), **changes))) == [State.READY]
    (answer,) = asked(alerts.mail, account(deployed(*PEOPLE), **none))
    assert answer.state is State.READY


def test_people_of_a_team_are_asked_about_at_the_topic_of_the_team() -> None:
    topic = f"arn:aws:sns:us-east-1:{ACCOUNT}:{STACK}-team-research-alerts-topic-0123abc"
    cloud = Cloud().answers("sns", "list_topics", {"Topics": [{"TopicArn": TOPIC}, {"TopicArn": topic}]})
    confirmed = [{"Endpoint": one, "SubscriptionArn": f"{TOPIC}:1"} for one in PEOPLE]
    cloud.answers("sns", "list_subscriptions_by_topic", {"Subscriptions": confirmed}, TopicArn=TOPIC)
    pending = {"Endpoint": "lead@example.com", "SubscriptionArn": "PendingConfirmation"}
    cloud.answers("sns", "list_subscriptions_by_topic", {"Subscriptions": [pending]}, TopicArn=topic)
    with_team = account(cloud, teams__0__alert_emails=["lead@example.com"])
    ready, short = asked(alerts.mail, with_team)
    assert ready.state is State.READY
    assert short.state is State.SHORT and "lead@example.com" in short.text
