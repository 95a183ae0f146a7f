"""Rules of a large stack whose clusters are in several accounts or projects of one cloud (docs/adr/0103)."""

from collections.abc import Callable, Iterator

from infra.errors import Problem
from infra.stackspec.clusters.large import ClusterSpec, LargeLayout
from infra.stackspec.stack import StackSpec

_CLUSTERS = "layout.clusters"


def is_apart(spec: StackSpec, one: ClusterSpec) -> bool:
    """Return whether a cluster on the manager's cloud is in another account or project."""
    return _is_on_its_cloud(spec, one) and _differs(spec, one, spec.on.place_field)


def _is_on_its_cloud(spec: StackSpec, one: ClusterSpec) -> bool:
    return one.on is not None and one.on.cloud == spec.on.cloud


def _differs(spec: StackSpec, one: ClusterSpec, field: str) -> bool:
    return bool(getattr(one.on, field) != getattr(spec.on, field))


def _apart(spec: StackSpec, layout: LargeLayout) -> Iterator[tuple[str, ClusterSpec]]:
    for index, one in enumerate(layout.clusters):
        if is_apart(spec, one):
            yield f"{_CLUSTERS}[{index}]", one


def logins(spec: StackSpec, layout: LargeLayout) -> Iterator[Problem]:
    """The manager's stack reaches another account by a role, as the environment has one account's login.

    It accepts the connection of the networks there, and makes the routes. A cluster in the account of a
    manager that another login deploys needs no role of its own.
    """
    for path, one in _apart(spec, layout):
        login, place = spec.on.login_field, spec.on.place_field
        if login and getattr(one.on, login) is None:
            rule = f"the manager is in account {getattr(spec.on, place)}, and one login is of one account"
            fix = "Name a role there that the deployer may assume: `{role_arn: ...}`."
            where, against = f"{path}.on.{login}", f"{path}.on.{place}"
            yield Problem(where, None, rule, fix, against, code="role-of-other-account-missing")


def budgets(spec: StackSpec, layout: LargeLayout) -> Iterator[Problem]:
    """A cluster whose cost the manager's budget does not count has a part of it, and others have none.

    A budget of a member account of AWS counts that account alone, one of Cloud Billing the projects of its
    billing account.
    """
    for path, one in _apart(spec, layout):
        if is_counted(spec, one):
            if one.monthly_usd is not None:
                rule, fix = "the budget of the stack counts this project, too", "Leave it out."
                where = f"{path}.monthly_usd"
                yield Problem(where, one.monthly_usd, rule, fix, code="budget-counted-twice")
        elif one.monthly_usd is None:
            rule = "the budget of the stack does not count this account"
            fix = "Set its part of budget.monthly_usd."
            where, against = f"{path}.monthly_usd", "budget.monthly_usd"
            yield Problem(where, None, rule, fix, against, code="budget-of-cluster-missing")


def is_counted(spec: StackSpec, one: ClusterSpec) -> bool:
    """Return whether the manager's budget counts a cluster on its cloud."""
    return not (_is_on_its_cloud(spec, one) and _differs(spec, one, spec.on.payer_field))


RULES: tuple[Callable[[StackSpec, LargeLayout], Iterator[Problem]], ...] = (logins, budgets)
