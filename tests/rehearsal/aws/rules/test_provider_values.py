"""Values that the AWS provider refuses are refused at their paths; unknown ones are not judged."""

from typing import Any

import pytest

from rehearsal.aws import provider, values
from rehearsal.aws.rules import BOOK
from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.facts import of_values
from tests.rehearsal.gcp.rules.test_provider import nested

QUEUE = "sqs/queue:Queue"


def paths(token: str, inputs: Properties) -> list[str]:
    return [violation.path for _, violation in BOOK.broken_alone(f"aws:{token}", inputs)]


@pytest.mark.parametrize(
    ("token", "refused", "accepted"),
    [
        (QUEUE, {"delaySeconds": 901}, {"delaySeconds": 900}),
        (QUEUE, {"redrivePolicy": "arn"}, {"redrivePolicy": '{"maxReceiveCount":3}'}),
        ("lambda/functionUrl:FunctionUrl", {"cors": {"maxAge": 86401}}, {"cors": {"maxAge": 86400}}),
        ("rds/parameterGroup:ParameterGroup", {"name": "1group"}, {"name": "group-a"}),
        ("batch/jobDefinition:JobDefinition", {"timeout": {"attemptDurationSeconds": 59}}, {"timeout": {}}),
        ("rds/proxy:Proxy", {"engineFamily": "POSTGRES"}, {"engineFamily": "POSTGRESQL"}),
        ("ssm/association:Association", {"complianceSeverity": "SEVERE"}, {"maxConcurrency": "50%"}),
    ],
)
def test_a_value_is_refused_as_the_provider_refuses_it(
    token: str, refused: Properties, accepted: Properties
) -> None:
    check = BOOK.rules[f"AWS-PROVIDER-{token.partition(':')[0]}"].alone
    assert check is not None
    assert [one.path for one in check(refused)] != []
    assert [one.path for one in check(accepted)] == []


def test_a_property_of_another_rule_is_reported_once() -> None:
    found = paths("secretsmanager/secret:Secret", {"recoveryWindowInDays": 3})
    assert found == ["recoveryWindowInDays"]


def test_properties_that_exclude_each_other_are_refused_unless_one_is_unknown() -> None:
    both: dict[str, Any] = {"kmsMasterKeyId": "alias/key", "sqsManagedSseEnabled": True}
    assert paths(QUEUE, both) == ["kmsMasterKeyId"]
    assert paths(QUEUE, {**both, "sqsManagedSseEnabled": UNKNOWN}) == []
    assert paths(QUEUE, {**both, "sqsManagedSseEnabled": False}) == []


def test_secrets_and_unknown_values_are_not_judged() -> None:
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": "x"}
    assert paths("lightsail/database:Database", {"masterPassword": secret}) == []
    assert paths(QUEUE, {"delaySeconds": UNKNOWN, "redrivePolicy": UNKNOWN}) == []


def test_words_agree_with_the_schemas_of_cloudformation() -> None:
    compared, apart = 0, []
    for token in provider.lines():
        theirs = values.facts().get(token, {}).get("words_any_case", {})
        ours = provider.facts(token)
        for path in theirs:
            words = ours.get("words", {}).get(path) or ours.get("words_any_case", {}).get(path)
            if words:
                compared += 1
                mine, others = ({str(one).lower() for one in of} for of in (words, theirs[path]))
                if not others <= mine:
                    apart.append((token, path, sorted(others - mine)))
    assert compared > 300
    assert len(apart) <= compared * 0.02, apart


def test_every_list_accepts_its_words() -> None:
    for token in provider.lines():
        of_type = provider.facts(token)
        for fact in ("words", "words_any_case"):
            for path, words in of_type.get(fact, {}).items():
                for word in words:
                    assert [*of_values({fact: {path: words}}, nested(path, word))] == [], (token, path)


def test_a_secret_of_a_domain_is_an_arn_and_not_short() -> None:
    # A length that SDK 2 reported at the wrong property.
    secret = "arn:aws:secretsmanager:us-east-1:123456789012:secret:oauth-settings-AbCdEf"
    settings = {"canvasAppSettings": {"identityProviderOauthSettings": [{"secretArn": secret}]}}
    facts = provider.facts("sagemaker/domain:Domain")
    assert [*of_values(facts, {"defaultUserSettings": settings})] == []
