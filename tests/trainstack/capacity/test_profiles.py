"""Capacity of stacks of several clusters, of Slurm systems and of pools with shared GPUs."""

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from infra.slurm import SystemOptions, system
from infra.stackspec import load_file
from infra.stackspec.aws.cloud import AwsPoolSpec
from infra.stackspec.sharing import TimeSharingSpec
from infra.stackspec.stack import StackSpec
from tests.trainstack.cli.command import run, run_json
from trainstack.capacity.classes import PoolCapacity
from trainstack.capacity.pools import pools
from trainstack.ledger import forms, slurm

ON = datetime.date(2026, 12, 1)
FIRST, LAST = datetime.date(2026, 8, 1), datetime.date(2026, 11, 30)


def ledger(
    stack: str, held: Mapping[tuple[str, str], float], usd: float | None = 2.0
) -> list[dict[str, Any]]:
    """Documents of four whole months in which teams hold so many GPUs of pools all the time."""
    days = [FIRST + datetime.timedelta(days=n) for n in range((LAST - FIRST).days + 1)]
    made = []
    for month in sorted({f"{day:%Y-%m}" for day in days}):
        of_month = [day for day in days if f"{day:%Y-%m}" == month]
        end = of_month[-1] + datetime.timedelta(days=1)
        teams = [
            {
                "team": team,
                "begun": f"{FIRST}T00:00:00Z",
                "seen": f"{end}T00:00:00Z",
                "uncertain_hours": 0,
                "lines": [
                    {
                        "pool": pool,
                        "day": str(day),
                        "held_hours": gpus * 24,
                        "usd": None if usd is None else gpus * 24 * usd,
                    }
                    for (who, pool), gpus in held.items()
                    if who == team
                    for day in of_month
                ],
            }
            for team in dict.fromkeys(who for who, _ in held)
        ]
        made.append({"schema": "trainstack.ledger/1", "stack": stack, "month": month, "teams": teams})
    return made


def shown(tmp_path: Path, stack: str, documents: list[dict[str, Any]], *more: str) -> Any:
    file = tmp_path / "ledger.json"
    file.write_text("\n".join(map(json.dumps, documents)))
    code, found = run_json("capacity", "-s", stack, "--ledger", str(file), *more)
    assert code == 0
    return found


def _by_name(spec: StackSpec) -> dict[str, PoolCapacity]:
    return {one.flavor: one for one in pools(spec, ON)}


def test_a_manager_has_the_pools_of_all_clusters_with_prices_of_their_regions() -> None:
    found = _by_name(load_file("large-aws").spec)
    assert {name: (one.path, one.region) for name, one in found.items()} == {
        "usw2-h100": ("layout.clusters[0].pools[0]", "us-west-2"),
        "usw2-l4": ("layout.clusters[0].pools[1]", "us-west-2"),
        "use1-a100": ("layout.clusters[1].pools[0]", "us-east-1"),
        "use1-l4": ("layout.clusters[1].pools[1]", "us-east-1"),
    }
    assert (found["usw2-h100"].nodes, found["usw2-h100"].kind) == (4, "block")
    # One cluster alone says the same of its pools.
    (alone,) = (one for one in pools(load_file("large-aws-use1").spec, ON) if one.flavor == "use1-a100")
    assert alone.rates == found["use1-a100"].rates and alone.guarantees == found["use1-a100"].guarantees


def test_the_ledger_of_a_manager_is_compared_with_the_commitments_of_its_clusters(tmp_path: Path) -> None:
    held = {("Pretraining", "usw2-h100"): 24.0, ("Vision", "use1-a100"): 8.0, ("Vision", "usw2-l4"): 1.0}
    found = shown(tmp_path, "large-aws", ledger("large-aws", held))
    november = {one["class"]: one for one in found["months"] if one["month"] == "2026-11"}
    assert november["p5.48xlarge"]["utilization"] == pytest.approx(24 / 32)
    assert november["p5.48xlarge"]["idle_hours"] == pytest.approx(8 * 24 * 30)
    assert november["p4d.24xlarge"]["held_hours"] == pytest.approx(8 * 24 * 30)
    # Pools of one machine type in two regions are one class.
    assert november["g6.2xlarge"]["held_hours_by_purchase"] == {"spot": 24 * 30, "on_demand": 0}
    assert {one["region"] for one in found["pools"]} == {"us-east-1", "us-west-2"}
    assert not [note for note in found["notes"] if "not in the stack file" in note]


def test_a_slurm_system_is_planned_from_its_ledger(tmp_path: Path) -> None:
    spec = load_file("large-slurm-aws").spec
    made = system(spec, SystemOptions())
    start = int(datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC).timestamp())
    row = f"1|{made.accounts[0].name}|p4d|{start}|{start + 86400 * 30}|cpu=96,gres/gpu=8"
    body = forms.documents(slurm.months(made, row, "2026-11", start + 86400 * 30))
    document = {"schema": "trainstack.ledger/1", "stack": spec.name, "month": "2026-11", "teams": body}
    found = shown(tmp_path, spec.name, json.loads(json.dumps([document])))
    (a100,) = (one for one in found["months"] if one["class"] == "p4d.24xlarge")
    assert a100["held_hours"] == pytest.approx(8 * 24 * 30) and a100["held_usd"] > 0
    assert found["queue"] is None


def test_the_accounting_of_slurm_is_read_from_the_first_job_with_gpus_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Months before it would be idle commitments of a system that did not exist."""
    now = datetime.datetime.now(datetime.UTC)
    begun = (now.replace(day=1) - datetime.timedelta(days=10)).replace(hour=6, minute=0, second=0)
    account = system(load_file("large-slurm-aws").spec, SystemOptions()).accounts[0].name
    row = f"1|{account}|p4d|{int(begun.timestamp())}|{int(begun.timestamp()) + 3600}|gres/gpu=8"
    monkeypatch.setattr(slurm, "read_sacct", lambda _, month: row if month >= f"{begun:%Y-%m}" else "")
    code, found = run_json("capacity", "-s", "large-slurm-aws")
    assert code == 0 and found["queue"] is None
    assert min(one["from"] for one in found["months"]) == f"{begun:%Y-%m-%d}T00:00:00Z"
    assert sum(one["held_hours"] for one in found["months"]) == pytest.approx(8)


def test_a_slurm_system_without_jobs_has_no_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "read_sacct", lambda _, __: "")
    with pytest.raises(UserError) as caught:
        run("capacity", "-s", "large-slurm-aws")
    assert [code for code, _ in caught.value.codes] == ["ledger-empty"]


def test_teams_have_their_hours_and_guarantees_by_class_and_month(tmp_path: Path) -> None:
    held = {("Pretraining", "usw2-h100"): 24.0, ("Vision", "use1-a100"): 8.0, ("Vision", "gone"): 1.0}
    found = shown(tmp_path, "large-aws", ledger("large-aws", held))
    rows = {(one["team"], one["class"]): one for one in found["teams"] if one["month"] == "2026-11"}
    mine = rows["Pretraining", "p5.48xlarge"]
    assert (mine["held_hours"], mine["guaranteed_hours"]) == (24 * 24 * 30, 16 * 24 * 30)
    assert mine["share"] == 1.0 and mine["held_usd"] == pytest.approx(24 * 24 * 30 * 2.0)
    # A guarantee without use is a row, too; hours of a pool that is gone stay in the sums.
    assert rows["Evaluation", "g6.2xlarge"]["held_hours"] == 0
    assert rows["Evaluation", "g6.2xlarge"]["guaranteed_hours"] == 2 * 2 * 24 * 30
    assert rows["Vision", "(pool not in the spec)"]["held_hours"] == 24 * 30
    for month in {one["month"] for one in found["months"]}:
        sums = [
            sum(one["held_hours"] for one in found[name] if one["month"] == month)
            for name in ("teams", "months")
        ]
        assert sums[0] == pytest.approx(sums[1])


def test_hours_without_a_price_leave_the_dollars_of_a_team_unknown(tmp_path: Path) -> None:
    held = {("Vision", "use1-a100"): 8.0}
    found = shown(tmp_path, "large-aws", ledger("large-aws", held, usd=None))
    of_team = [one for one in found["teams"] if one["team"] == "Vision" and one["held_hours"]]
    assert of_team and {one["held_usd"] for one in of_team} == {None}


def test_guarantees_of_shared_gpus_count_as_their_part() -> None:
    spec = load_file("dev-aws").spec
    turns = {"l4": AwsPoolSpec(sharing=TimeSharingSpec(kind="time_sharing", clients=4))}
    first, *others = (team.model_copy(update={"gpus": {}}) for team in spec.teams)
    changed = {
        "on": spec.on.model_copy(update={"pools": turns}),
        "teams": (first.model_copy(update={"shares": {"l4": 6}}), *others),
    }
    found, whole = _by_name(spec.model_copy(update=changed))["l4"], _by_name(spec)["l4"]
    assert (found.shares, found.node_gpus, found.rates) == (4, whole.node_gpus, whole.rates)
    assert found.guarantees == {first.name: 1.5}


def test_rows_for_a_spreadsheet(tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    held = {("Vision", "use1-a100"): 8.0}
    file.write_text("\n".join(map(json.dumps, ledger("large-aws", held))))
    code, text = run("capacity", "-s", "large-aws", "--ledger", str(file), "--format", "csv")
    head, *rows = text.strip().splitlines()
    assert code == 0 and head.startswith("month,") and "idle_usd" in head
    assert len(rows) == 4 * 3 and len({len(row.split(",")) for row in (head, *rows)}) == 1


def test_a_manager_with_clusters_on_both_clouds_is_one_report(tmp_path: Path) -> None:
    held = {("Pretraining", "use1-a100"): 16.0, ("Pretraining", "usc1-h100-spot"): 8.0}
    found = shown(tmp_path, "large-mixed", ledger("large-mixed", held))
    clouds = {one["pool"]: (one["cloud"], one["region"]) for one in found["pools"]}
    assert clouds["use1-a100"] == ("aws", "us-east-1")
    assert clouds["usc1-h100-spot"] == ("gcp", "us-central1")
    november = {one["class"]: one for one in found["months"] if one["month"] == "2026-11"}
    assert november["p4d.24xlarge"]["held_hours"] == pytest.approx(16 * 24 * 30)
    assert november["a3-megagpu-8g"]["spot_share"] == 1.0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--month", "2026-07"), "ledger-month-missing"),
        (("--month", "2026-13"), "month-invalid"),
        (("--month", "2026-10", "--months", "3"), "option-conflict"),
    ],
)
def test_a_month_that_cannot_be_shown(tmp_path: Path, words: tuple[str, ...], code: str) -> None:
    with pytest.raises(UserError) as caught:
        shown(tmp_path, "large-aws", ledger("large-aws", {("Vision", "use1-a100"): 8.0}), *words)
    assert [found for found, _ in caught.value.codes] == [code]
