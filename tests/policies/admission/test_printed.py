"""Output of `python -m policies.admission`."""

import json

import pytest

from policies.admission.__main__ import main
from policies.rules import CATALOG


def test_each_rule_is_a_policy_with_a_binding_of_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["Warn", "Audit"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    for policy, binding in zip(items[::2], items[1::2], strict=True):
        rule = CATALOG.rules[policy["metadata"]["annotations"]["trainstack.dev/policy"]]
        assert policy["metadata"] == binding["metadata"]
        assert policy["spec"]["validations"][0]["message"].startswith(f"{rule.id}: {rule.title}")
        assert binding["spec"]["policyName"] == policy["metadata"]["name"] == rule.id.lower()
        assert binding["spec"]["validationActions"] == ["Warn", "Audit"]


def test_a_word_that_is_no_action_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["deny"]) == 2
    assert capsys.readouterr().err.startswith("deny ")
