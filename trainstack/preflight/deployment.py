"""Checks of the real account or project before a deployment, whichever its cloud."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from infra.errors import Problem, UserError
from infra.stackspec import StackSpec
from infra.stackspec.layouts import LargeLayout
from trainstack.preflight.answers import Answer, State


@dataclass(frozen=True)
class Preflight:
    """The checks of one cloud, for one stack."""

    place: str
    """The account or project, such as `project ml-dev`."""
    identity: str
    """The check that comes first, and is always made."""
    checks: tuple[str, ...]
    before_up: tuple[str, ...]
    """Those that `up` makes itself: what would fail it after its begin."""
    ask: Callable[[Collection[str]], list[Answer]]
    left: Callable[[], Mapping[str, float]]
    """The quotas that others leave to the stack, of those that it uses."""


def manager_elsewhere(spec: StackSpec, together: Sequence[StackSpec]) -> StackSpec | None:
    """The large stack of a cluster, where it is on another cloud, or in another account or project.

    `together`: specs of the stacks of one deployment, the large one among them.
    """
    manager = next((one for one in together if isinstance(one.layout, LargeLayout)), None)
    if manager is None or spec.name == manager.name or place_of(spec) == place_of(manager):
        return None
    return manager


def state_elsewhere(check: str, manager: StackSpec) -> Answer:
    """The answer about the state of a cluster, which is in the place of its large stack."""
    cloud, place = place_of(manager)
    text = f"the state is that of {manager.name}, in {place} on {cloud}, where its own preflight checks it"
    return Answer(check, State.READY, text)


def place_of(spec: StackSpec) -> tuple[str, str]:
    """The cloud of a stack, and its account or project."""
    return spec.cloud, str(getattr(spec.on, spec.on.place_field, ""))


def unsupported(spec: StackSpec) -> UserError:
    """The error for a stack whose layout has no checks."""
    rule = "preflight has no checks for it yet"
    fix = "Check quotas and the rights of the deployer by hand: docs/how-to/slurm has what a stack takes."
    profile = spec.layout.profile
    return UserError([Problem("trainstack:profile", profile, rule, fix, code="preflight-not-supported")])


def require_ready(preflight: Preflight) -> None:
    """Raise UserError where `up` has the wrong account, or could not create or reach its cluster."""
    wrong = [
        answer
        for answer in preflight.ask(preflight.before_up)
        if answer.state is State.SHORT
        or (answer.state is State.UNKNOWN and answer.check == preflight.identity)
    ]
    if wrong:
        code = "preflight-failed"
        raise UserError([Problem(one.check, None, one.text, one.fix, code=code) for one in wrong])
