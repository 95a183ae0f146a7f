"""Deployment of a fleet: what was confirmed, wave after wave, until too many stacks have failed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainstack.fleet import words
from trainstack.fleet.outcome import FAILURES, FINISHED, StackOutcome, State, of_stack
from trainstack.fleet.runner import Runner
from trainstack.fleet.stacks import FleetStack
from trainstack.fleet.waves import waves

_STEADY = ("same", "read")


@dataclass(frozen=True)
class DeploymentPlan:
    """Previews of the selected stacks, and what follows from them."""

    stacks: Sequence[FleetStack]
    previews: Mapping[str, StackOutcome]
    """Previews by stack; of a stack that an earlier run deployed, the outcome of that."""

    @property
    def changing(self) -> list[FleetStack]:
        """Stacks that are deployed: their preview succeeded, shows changes and violates no policy."""
        return [one for one in self.stacks if self._changes(one)]

    @property
    def unchanged(self) -> list[StackOutcome]:
        """Outcomes of stacks without anything to deploy."""
        previews = (self.previews[one.id] for one in self.stacks if not self._changes(one))
        return [one for one in previews if one.state is State.DONE]

    @property
    def left_out(self) -> list[StackOutcome]:
        """Outcomes of stacks whose preview failed or violates a policy."""
        return [one for one in self.previews.values() if one.state is not State.DONE]

    @property
    def totals(self) -> Mapping[str, int]:
        """Number of resources by operation."""
        found: Counter[str] = Counter()
        for one in self.changing:
            found.update(_changed(self.previews[one.id]))
        return found

    def _changes(self, stack: FleetStack) -> bool:
        preview = self.previews[stack.id]
        return preview.state is State.DONE and bool(_changed(preview)) and "plan" in (preview.result or {})


def _changed(preview: StackOutcome) -> dict[str, int]:
    changes: Mapping[str, int] = (preview.result or {}).get("changes") or {}
    return {name: count for name, count in changes.items() if name not in _STEADY and count}


def preview(runner: Runner, stacks: Sequence[FleetStack], *, policies: bool) -> DeploymentPlan:
    """Preview the stacks that no earlier run has deployed."""
    known = {one.id: done for one in stacks if (done := runner.journal.finished("up", one))}
    rest = [one for one in stacks if one.id not in known]
    outcomes = runner.run(
        rest,
        lambda one: words.of_command("preview", one, rehearse=runner.rehearse, policies=policies),
        phase="preview",
    )
    return DeploymentPlan(stacks, known | {one.id: one for one in outcomes})


def deploy(
    runner: Runner, plan: DeploymentPlan, first: Sequence[int], stop_after: int, *, policies: bool
) -> list[StackOutcome]:
    """Deploy what was confirmed; returns the outcomes of all stacks of the plan.

    A client whose stack has failed gets no further one. After `stop_after` failures nothing more is started.
    """

    def command(stack: FleetStack) -> list[str]:
        result = plan.previews[stack.id].result or {}
        up = words.of_command("up", stack, rehearse=runner.rehearse, policies=policies)
        return [*up, "--yes", "--plan", str(result["plan"])]

    ended: dict[str, StackOutcome] = {}
    for wave in waves(plan.changing, first):
        failed = {one.client for one in ended.values() if one.state not in FINISHED}
        failures = sum(one.state in FAILURES for one in ended.values())
        held = [one for one in wave if failures >= stop_after or one.client.name in failed]
        ended |= {one.id: _not_started(one, stopped=failures >= stop_after) for one in held}
        rest = [one for one in wave if one not in held]
        outcomes = runner.run(rest, command, phase="up", changes=True, stop_after=stop_after - failures)
        ended |= {one.id: one for one in outcomes}
    return [ended.get(one.id, plan.previews[one.id]) for one in plan.stacks]


def _not_started(stack: FleetStack, *, stopped: bool) -> StackOutcome:
    rule = "too many stacks have failed" if stopped else "a stack of this client has failed before"
    code = "deployment-stopped" if stopped else "earlier-stack-failed"
    problem = {"code": code, "path": "", "rule": rule, "fix": "Correct those, and run the command again."}
    return of_stack(stack, State.NOT_STARTED, problems=(problem,))
