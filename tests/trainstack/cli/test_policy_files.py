"""Settings by which a stack is judged when its caller names none."""

from pathlib import Path

import pytest

from trainstack.cli.operations.policy_files import PolicyFiles, of_stack

ELSEWHERE = Path("elsewhere.yaml")


@pytest.mark.parametrize(
    ("given", "stack", "settings", "environment"),
    [
        (PolicyFiles(), "large-aws-usw2", "audit.yaml", "large-aws-usw2"),
        (PolicyFiles(environment="prod-gcp"), "mine", "audit.yaml", "prod-gcp"),
        (PolicyFiles(), "mine", None, None),
        (PolicyFiles(config=ELSEWHERE), "large-aws-usw2", ELSEWHERE.name, None),
    ],
)
def test_settings_of_the_checkout_are_those_that_name_the_stack(
    given: PolicyFiles, stack: str, settings: str | None, environment: str | None
) -> None:
    found = of_stack(given, stack)
    assert (found.config and found.config.name, found.environment) == (settings, environment)
