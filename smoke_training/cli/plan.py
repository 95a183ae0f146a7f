"""`plan`: what a run would do, how long it would take, what it would cost, and what would be judged."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from smoke_training import plan as plans
from smoke_training.cli.failing import refuse
from smoke_training.cli.outlook import Outlook, outlook
from smoke_training.phases import FULL, NAMES, QUICK
from smoke_training.plan import Plan, PlanError

NAME = "plan"
HELP = "what a run would do, how long, for how much, and what would be judged"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--plan", type=Path, help="the plan of a stack (JSON)")
    where.add_argument("--ranks", type=int, default=4, help="ranks on this machine; default 4")
    parser.add_argument("--full", action="store_true", help="every phase, with more samples")
    parser.add_argument("--only", help=f"only these phases, separated by commas: {', '.join(NAMES)}")
    parser.add_argument("--json", action="store_true", help="for machines")


def main(chosen: argparse.Namespace) -> int:
    """Print the outlook; 0, or 3 when there is no such plan."""
    only = tuple(chosen.only.split(",")) if chosen.only else None
    known = f"must be one of {', '.join(NAMES)}"
    unknown = [f"--only: got {name!r}; {known}" for name in only or () if name not in NAMES]
    try:
        plan = _plan(chosen, only)
    except PlanError as error:
        return refuse(f"{chosen.plan}: {len(error.problems)} problems in the plan", error.problems)
    except OSError as error:
        return refuse("the plan cannot be read", [str(error)])
    if unknown or plan is None:
        return refuse("there is no such run", unknown or [f"--ranks: got {chosen.ranks}; must be at least 1"])
    found = outlook(plan)
    sys.stdout.write(json.dumps(_document(found), indent=1) + "\n" if chosen.json else _text(plan, found))
    return 0


def _plan(chosen: argparse.Namespace, only: tuple[str, ...] | None) -> Plan | None:
    if chosen.plan is not None:
        return plans.parse(chosen.plan.read_text())
    return plans.local_plan(chosen.ranks, FULL if chosen.full else QUICK, only) if chosen.ranks >= 1 else None


def _text(plan: Plan, found: Outlook) -> str:
    return "\n".join(_lines(plan, found)) + "\n"


def _lines(plan: Plan, found: Outlook) -> Iterator[str]:
    ranks = f"{plan.ranks_per_node} ranks" if plan.ranks_per_node else "one rank per GPU or CPU"
    yield f"{plan.stack}: {plan.nodes} x {plan.instance_type}, {ranks} a node, {found.depth}"
    yield ""
    for phase in found.phases:
        yield f"  {phase.seconds(found.depth):5.0f} s  {phase.name:<12} {phase.what}"
    yield f"  {found.seconds:5.0f} s  in all (budget of four CPU ranks); an ERROR after {found.limit_s:.0f} s"
    yield f"  cost     {_usd(found)}"
    yield ""
    for rule in found.checks:
        zone = found.zones.get(rule.id)
        claim = f"; nothing is claimed between {zone[0]:.4g} and {zone[1]:.4g}" if zone else ""
        yield f"  {'judged' if rule.required else 'reported':<9}{rule.id}{claim}"
    yield ""
    yield f"  the gate opens for {', '.join(found.accept)}"
    if found.partial:
        yield "  a part of the phases only: such a run validates no stack"


def _usd(found: Outlook) -> str:
    if found.expected_usd is None or found.limit_usd is None:
        return "unknown: the plan has no hourly price"
    return f"about {found.expected_usd:.2f} USD, at most {found.limit_usd:.2f} USD while the run lasts"


def _document(found: Outlook) -> dict[str, object]:
    return {
        "depth": found.depth,
        "partial": found.partial,
        "phases": [
            {"name": phase.name, "what": phase.what, "seconds": phase.seconds(found.depth)}
            for phase in found.phases
        ],
        "seconds": found.seconds,
        "limit_s": found.limit_s,
        "cost": {
            "expected_usd": found.expected_usd,
            "limit_usd": found.limit_usd,
            "reason": None if found.expected_usd is not None else "the plan has no hourly price",
        },
        "checks": [
            {"id": rule.id, "required": rule.required, "zone": found.zones.get(rule.id)}
            for rule in found.checks
        ],
        "accept": list(found.accept),
    }
