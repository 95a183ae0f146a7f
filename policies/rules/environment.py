"""Production environments."""

from policies.resource import Resource
from policies.stack import Stack


def is_production(resource: Resource, stack: Stack, otherwise: bool | None = None) -> bool:
    """Return whether a resource is production, by its tags, else by `otherwise` or the settings.

    Raises UndeterminedError if the tag is unknown.
    """
    tags = {str(key).lower(): key for key in resource.tags}
    for name in stack.settings.environment_tags:
        if name in tags:
            return str(resource.tags[tags[name]]).lower() in stack.settings.production_names
    return stack.settings.production if otherwise is None else otherwise
