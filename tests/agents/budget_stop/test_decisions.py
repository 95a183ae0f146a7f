"""Workloads that a used-up budget stops, and those that it leaves running."""

from agents.budget_stop.decisions import EXEMPT, BillableWorkload, SpendingBudget, decide


def budget(
    scope: str = "person", value: str = "eve", spent: float = 600, act: str = "stop"
) -> SpendingBudget:
    return SpendingBudget(f"small-{scope}-{value}", scope, value, act, 500, spent)


def job(name: str = "train", **tags: str) -> BillableWorkload:
    marks = {f"trainstack:{key}": value for key, value in tags.items()}
    return BillableWorkload("training-job", name, f"arn:{name}", marks, {"TrainingJobName": name})


def test_what_belongs_to_the_person_is_stopped_and_nothing_else() -> None:
    mine, other = job("a", person="eve"), job("b", person="ada")
    (found,) = decide([budget()], [mine, other, job("c")])
    assert (found.running, found.action) == (mine, "stop")
    assert "$600.00 of $500.00" in found.reason


def test_at_the_limit_nothing_is_stopped() -> None:
    assert decide([budget(spent=500)], [job(person="eve")]) == []


def test_a_budget_that_warns_stops_nothing() -> None:
    (found,) = decide([budget(act="warn")], [job(person="eve")])
    assert found.action == "would stop"


def test_of_two_budgets_the_one_that_stops_counts() -> None:
    both = [budget("team", "vision", act="warn"), budget()]
    (found,) = decide(both, [job(person="eve", team="vision")])
    assert (found.action, found.budget.scope) == ("stop", "person")


def test_a_tag_with_a_reason_exempts() -> None:
    excused = BillableWorkload(
        "app", "x", "arn:x", {"trainstack:person": "eve", EXEMPT: "paper deadline"}, {}
    )
    (found,) = decide([budget()], [excused])
    assert found.action == "exempt" and found.reason.endswith("exempt: paper deadline")


def test_a_tag_without_a_reason_exempts_nothing_and_says_so() -> None:
    bare = BillableWorkload("app", "x", "arn:x", {"trainstack:person": "eve", EXEMPT: " "}, {})
    (found,) = decide([budget()], [bare])
    assert found.action == "stop" and "gives no reason" in found.reason
