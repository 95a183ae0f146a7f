"""The line of a stack in the report of a fleet command."""

from tests.trainstack.cli.command import run_json
from trainstack.fleet.outcome import StackOutcome, State
from trainstack.fleet.report.document import headline


def test_a_price_stands_beside_its_budget() -> None:
    _, made = run_json("cost", "-s", "dev-aws")
    lines = {}
    for budget in (made["price"]["expected_usd"] + 1, made["price"]["expected_usd"] - 1):
        outcome = StackOutcome("acme", "dev", State.DONE, result={**made, "budget_usd": budget})
        lines[budget] = headline("cost", outcome)
        assert f"{budget:,.0f}" in lines[budget]
    first, second = (line.split()[0] for line in lines.values())
    assert first != second
