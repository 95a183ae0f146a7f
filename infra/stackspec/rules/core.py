"""Rules of every stack, on every cloud."""

import datetime
from collections.abc import Callable, Iterator

from infra.catalog.kubernetes.kueue import name_problems
from infra.errors import Problem
from infra.naming import team_namespace
from infra.stackspec import cron
from infra.stackspec.rules.team_budgets import team_budgets
from infra.stackspec.stack import StackSpec, TeamSpec

Rule = Callable[[StackSpec], Iterator[Problem]]
BURN_MARGIN_S = 240  # as the run's plan demands: 120 for the nodes to join, 120 to start, copy and judge


def team_names(spec: StackSpec) -> Iterator[Problem]:
    """Names of teams stay different after they are turned into Kubernetes names."""
    yield from name_problems("teams", [team.name for team in spec.teams], team_namespace)


def team_members(spec: StackSpec) -> Iterator[Problem]:
    """Each member is in one team."""
    teams: dict[str, str] = {}
    for index, team in enumerate(spec.teams):
        for at, member in enumerate(team.members):
            other = teams.get(member)
            teams.setdefault(member, team.name)
            if other is not None:
                rule = "is named twice" if other == team.name else f"is a member of {other}, too"
                fix = "List each member once, in one team."
                yield Problem(f"teams[{index}].members[{at}]", member, rule, fix, code="member-of-two-teams")


def team_folders(spec: StackSpec) -> Iterator[Problem]:
    """No two teams share a folder."""
    owners: dict[str, TeamSpec] = {}
    for index, team in enumerate(spec.teams):
        try:
            other = owners.setdefault(team.data_folder, team)
        except ValueError:
            continue  # reported by `team_names`
        # Equal names are reported by `team_names`.
        if other is not team and (team.folder or other.folder):
            fix = "Choose another folder; a renamed team keeps the folder of its old name."
            rule = f"is the folder of {other.name}"
            yield Problem(f"teams[{index}].folder", team.data_folder, rule, fix, code="folder-taken")


def accepted_verdicts(spec: StackSpec) -> Iterator[Problem]:
    """PASS is an accepted verdict."""
    if "PASS" not in spec.smoke.accept:
        rule, fix = "PASS must open the gate", "Add PASS."
        yield Problem("smoke.accept", list(spec.smoke.accept), rule, fix, code="pass-must-open-gate")


def smoke_burn(spec: StackSpec) -> Iterator[Problem]:
    """The depth `burn` has a time, the others have none, and it fits into the time limit of the gate."""
    wanted = spec.smoke
    if wanted.depth == "burn" and wanted.burn_s is None:
        fix = "Write a time with its unit, such as 15m, or another depth."
        yield Problem("smoke.burn", None, "the depth burn needs a time", fix, code="burn-without-time")
    if wanted.depth != "burn" and wanted.burn_s is not None:
        rule = f"only the depth burn has a time; smoke.depth is {wanted.depth}"
        fix = "Leave it out, or set smoke.depth to burn: then nothing else is measured."
        yield Problem("smoke.burn", wanted.burn, rule, fix, against="smoke.depth", code="burn-without-depth")
    needed = (wanted.burn_s or 0) + BURN_MARGIN_S
    if wanted.burn_s is not None and needed > wanted.timeout_s:
        rule = (
            f"with {BURN_MARGIN_S} s to join, start and judge longer than smoke.timeout_s, {wanted.timeout_s}"
        )
        fix = f"Set smoke.timeout_s to {needed}, up to {6 * 3600}, or a shorter time."
        yield Problem(
            "smoke.burn", wanted.burn, rule, fix, against="smoke.timeout_s", code="burn-outlives-gate"
        )


def smoke_schedule(spec: StackSpec) -> Iterator[Problem]:
    """Scheduled validations need a gate, a valid cron expression, and at most one run per hour."""
    wanted = spec.smoke.schedule
    if wanted is None:
        return
    wrong = cron.problem(wanted)
    if wrong is not None:
        fix = 'Write minute, hour, day, month, day of the week, such as "0 5 * * 1", or null.'
        yield Problem("smoke.schedule", wanted, wrong, fix, code="invalid-schedule")
    elif cron.often(wanted):
        fix = "Set one minute; every run takes whole nodes."
        yield Problem("smoke.schedule", wanted, "more than once an hour", fix, code="schedule-too-frequent")
    if not spec.smoke.enabled:
        rule = "there is no gate to repeat: smoke.enabled is false"
        fix = "Enable the gate, or set smoke.schedule to null."
        yield Problem(
            "smoke.schedule", wanted, rule, fix, against="smoke.enabled", code="schedule-without-gate"
        )


def last_day(spec: StackSpec) -> Iterator[Problem]:
    """The last day of the stack is a calendar day."""
    if spec.expires_on != "never":
        try:
            datetime.date.fromisoformat(spec.expires_on)
        except ValueError:
            fix = "Write year, month and day, such as 2027-03-31, or never."
            yield Problem("expires_on", spec.expires_on, "there is no such day", fix, code="no-such-day")


RULES: tuple[Rule, ...] = (
    team_names,
    team_members,
    team_folders,
    team_budgets,
    accepted_verdicts,
    smoke_burn,
    smoke_schedule,
    last_day,
)
