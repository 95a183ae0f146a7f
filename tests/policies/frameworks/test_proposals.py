"""The list of proposed checks names rules that exist, or says why there is none."""

from policies.frameworks.proposals import proposals
from policies.rules import CATALOG


def test_each_check_has_rules_or_a_reason() -> None:
    found = proposals()
    assert len({one.name for one in found.checks}) == len(found.checks) <= found.candidates
    for one in found.checks:
        assert set(one.rules) <= set(CATALOG.rules), one
        assert bool(one.rules) == (one.status != "not"), one
        assert one.why and one.issue, one
