"""Frameworks: every rule is evidence for a control that exists, or says why for none."""

import datetime
import json
from dataclasses import replace

import pytest

from policies.evaluate import RuleOutcome
from policies.frameworks.framework import TO_BE_CONFIRMED, Framework, by_rule, frameworks, without_control
from policies.frameworks.tally import covered
from policies.resource import Resource
from policies.rules import CATALOG
from tests.policies.frameworks.sources import wrong

FOUND = frameworks(CATALOG.rules)


def test_every_rule_is_evidence_for_a_control_or_says_why_for_none() -> None:
    reported, silent = by_rule(FOUND), without_control()
    assert reported.keys() | silent.keys() == CATALOG.rules.keys()
    assert not reported.keys() & silent.keys()
    assert all(silent.values())


@pytest.mark.parametrize("framework", FOUND, ids=lambda one: one.key)
def test_a_framework_has_a_source_and_every_control_of_it_exists(framework: Framework) -> None:
    assert framework.name and framework.source and framework.wording
    assert datetime.date(2026, 1, 1) <= framework.read <= datetime.date.today()
    assert {one.control for one in framework.references} == framework.controls.keys()
    for one in framework.references:
        assert one.rule in CATALOG.rules and one.why.endswith("."), one
        assert (one.status == TO_BE_CONFIRMED) == (not one.verified)


def test_a_control_has_a_rule_once_for_each_reason() -> None:
    pairs = [(one.framework, one.control, one.rule, one.why) for f in FOUND for one in f.references]
    assert len(pairs) == len(set(pairs))
    rules = [pair[:3] for pair in pairs]
    assert len(rules) == len(set(rules)), sorted(one for one in rules if rules.count(one) > 1)


def test_benchmarks_take_the_references_of_the_rules() -> None:
    """There is one place that says what a rule is called elsewhere."""
    (eks,) = (one for one in FOUND if one.key == "cis-eks")
    own = {
        (rule.id, reported.removeprefix("CIS EKS "))
        for rule in CATALOG.rules.values()
        for reported in rule.references
        if reported.startswith("CIS EKS ")
    }
    assert {(one.rule, one.control) for one in eks.references} == own


def test_unverified_references_are_to_be_confirmed() -> None:
    (sold,) = (one for one in FOUND if one.key == "iso42001")
    assert {one.status for one in sold.references} == {TO_BE_CONFIRMED}


CRITERION = {"ref_id": "CC6.1.3", "description": "[TSC] Restricts, and Logs, Access — The entity does."}


def test_what_is_verified_is_held_against_the_mappings_that_it_names() -> None:
    def prowler(path: str) -> str:
        checks = ["iam_rotate_key_90_days"] if "/aws/" in path else []
        return json.dumps({"Requirements": [{"Id": "A.5.15", "Checks": checks}]})

    def ciso(_: str) -> str:
        return json.dumps({"objects": {"framework": {"requirement_nodes": [CRITERION]}}})

    def said(key: str, control: str, verified: str) -> list[str]:
        (framework,) = (one for one in FOUND if one.key == key)
        reference = replace(framework.references[0], control=control, verified=verified)
        return list(wrong(replace(framework, references=(reference,)), prowler, ciso))

    assert said("iso27001", "A.5.15", "prowler has iam_rotate_key_90_days here") == []
    assert len(said("iso27001", "A.8.2", "prowler has iam_rotate_key_90_days here")) == 1
    assert said("soc2", "CC6.1", "point of focus Restricts, and Logs, Access") == []
    assert len(said("soc2", "CC6.1", "points of focus Restricts, and Logs, Access, Guesses")) == 1


def test_a_resource_counts_by_the_worst_that_a_rule_says_of_it() -> None:
    rule = CATALOG.rules["MLS-NET-07"]
    one, other = (Resource("a:a/a:A", f"urn:{name}", name) for name in "ab")
    counts = covered(
        [RuleOutcome(rule, one, "waived"), RuleOutcome(rule, one, "fail"), RuleOutcome(rule, other, "pass")]
    )
    assert counts == {rule.id: {"fail": 1, "pass": 1}}


def test_a_benchmark_of_a_cloud_counts_nothing_of_another_one() -> None:
    rule = CATALOG.rules["MLS-REP-01"]
    kinds = ("aws:eks/cluster:Cluster", "kubernetes:core/v1:Pod", "gcp:container/cluster:Cluster")
    node, pod, other = (RuleOutcome(rule, Resource(kind, f"urn:{kind}", kind), "pass") for kind in kinds)
    assert covered([node, pod], "aws") == {rule.id: {"pass": 2}}
    assert covered([node, pod], "gcp") == {rule.id: {}}
    assert covered([node, pod, other], "gcp") == {rule.id: {"pass": 2}}
    assert covered([node, pod, other]) == {rule.id: {"pass": 3}}
