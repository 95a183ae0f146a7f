"""Tags of what a stack is made of that may change while it runs."""

from infra.naming import changing_tags
from infra.stackspec import StackSpec


def owners_tags(spec: StackSpec) -> dict[str, str]:
    """The stack's profile, who owns and pays for it, and its further tags."""
    return changing_tags(
        profile=spec.profile,
        owner=spec.owner,
        cost_center=spec.cost_center,
        environment=spec.environment,
        data_class=spec.data_class,
        expires_on=spec.expires_on,
        extra=spec.tags,
    )
