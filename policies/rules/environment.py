"""Whether a resource is one of production."""

from policies.resource import Resource
from policies.stack import Stack


def is_production(resource: Resource, stack: Stack, otherwise: bool | None = None) -> bool:
    """What its tags say, or else the settings; `otherwise` where production is the milder answer to a rule.

    Raises UndeterminedError where the tag is not known.
    """
    tags = {str(key).lower(): key for key in resource.tags}
    for name in stack.settings.environment_tags:
        if name in tags:
            return str(resource.tags[tags[name]]).lower() in stack.settings.production_names
    return stack.settings.production if otherwise is None else otherwise
