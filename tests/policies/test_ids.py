"""Ids are never used for another rule: pipelines, waivers and reports name them."""

from pathlib import Path

from policies.rules import CATALOG

FROZEN = Path(__file__).with_name("ids.txt")


def test_ids_and_their_severity_change_by_intent_only() -> None:
    """A new rule adds its line; one that is withdrawn keeps it, with the word `withdrawn`."""
    lines = [line.split() for line in FROZEN.read_text().splitlines()]
    known = {key: said for key, said in lines if said != "withdrawn"}
    assert len(lines) == len({key for key, _ in lines})
    assert {key: rule.severity for key, rule in CATALOG.rules.items()} == known


def test_every_rule_says_what_holds_why_and_what_to_do() -> None:
    for rule in CATALOG.rules.values():
        for text in (rule.title, rule.rationale, rule.remediation):
            assert text.endswith("."), (rule.id, text)
        assert rule.kinds
