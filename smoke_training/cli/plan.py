"""`plan`: phases, duration, cost and checks of a run, without running it."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from smoke_training.cli import files
from smoke_training.cli.run import add_phases, count, local
from smoke_training.judges.state.resume import LOST_S, RECOVERED_S
from smoke_training.phases import PHASE
from smoke_training.plan import Plan
from smoke_training.statistics.slowness import HALVED, TOLERATED
from smoke_training.statistics.straggler import NEGLIGIBLE_SLOWDOWN
from smoke_training.verdict import RULES

NAME = "plan"
HELP = "show phases, duration, cost and checks of a run"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--plan", type=Path, help="the plan of a stack (JSON)")
    where.add_argument("--ranks", type=count, default=4, help="ranks on this machine; default 4")
    add_phases(parser)
    parser.add_argument("--json", action="store_true", help="for machines")


def main(chosen: argparse.Namespace) -> int:
    """Print the outlook; 0."""
    plan = files.planned(chosen.plan) if chosen.plan else local(chosen)
    found = outlook(plan)
    text = json.dumps(found, indent=1) if chosen.json else "\n".join(_lines(plan, found))
    sys.stdout.write(text + "\n")
    return 0


def outlook(plan: Plan) -> dict[str, Any]:
    """Phases, duration, cost and checks of a run. Seconds are budgets of four CPU ranks; USD for all nodes.

    A run that fails early ends before `seconds`; past `limit_s` its verdict is ERROR.
    """
    names = plan.chosen_phases
    phases = [{"name": n, "what": PHASE[n].what, "seconds": plan.seconds(n)} for n in names]
    seconds = sum(map(plan.seconds, names))
    # Between these values a check reports neither "healthy" nor "faulty", in the unit of the check.
    zones = {
        "training.straggler": (NEGLIGIBLE_SLOWDOWN, plan.max_straggler_slowdown),
        "host.quota": (NEGLIGIBLE_SLOWDOWN, plan.max_straggler_slowdown),
        "resume.recovery": (RECOVERED_S, LOST_S),
        "storage.write": (TOLERATED, HALVED),
        "storage.read": (TOLERATED, HALVED),
    }
    return {
        "depth": plan.depth,
        "partial": plan.partial,
        "phases": phases,
        "seconds": seconds,
        "limit_s": plan.timeout_s,
        "cost": {
            "expected_usd": plan.cost_usd(seconds),
            "limit_usd": plan.cost_usd(plan.timeout_s),
            "reason": "the plan has no hourly price" if plan.hourly_cost_usd is None else None,
        },
        "checks": [
            {"id": rule.id, "required": rule.required, "zone": zones.get(rule.id)}
            for rule in RULES
            if rule.phase is None or rule.phase in names
        ],
        "accept": list(plan.accept),
    }


def _lines(plan: Plan, found: Mapping[str, Any]) -> Iterator[str]:
    ranks = f"{plan.ranks_per_node} ranks" if plan.ranks_per_node else "one rank per GPU or CPU"
    yield f"{plan.stack}: {plan.nodes} x {plan.instance_type}, {ranks} a node, {plan.depth}"
    yield ""
    for phase in found["phases"]:
        yield f"  {phase['seconds']:5.0f} s  {phase['name']:<12} {phase['what']}"
    cost, usd = found["cost"], f"unknown: {found['cost']['reason']}"
    if not cost["reason"]:
        most = f"at most {cost['limit_usd']:.2f} USD while the run lasts"
        usd = f"about {cost['expected_usd']:.2f} USD, {most}"
    limit = f"an ERROR after {plan.timeout_s:.0f} s"
    yield f"  {found['seconds']:5.0f} s  in all (budget of four CPU ranks); {limit}"
    yield f"  cost     {usd}"
    yield ""
    for check in found["checks"]:
        zone = check["zone"]
        claim = f"; nothing is claimed between {zone[0]:.4g} and {zone[1]:.4g}" if zone else ""
        yield f"  {'judged' if check['required'] else 'reported':<9}{check['id']}{claim}"
    yield ""
    yield f"  the gate opens for {', '.join(plan.accept)}"
    if plan.partial:
        yield "  some phases only: this run does not validate a stack"
