"""Client-side checks of the provider: schema, name, namespace."""

from rehearsal.core.model import Call, CheckFailure, Properties
from rehearsal.core.schema import Schemas
from rehearsal.kubernetes import helm
from rehearsal.kubernetes.api.naming import assign_name
from rehearsal.kubernetes.api.shapes import misshapen
from rehearsal.kubernetes.kinds import HELM_RELEASE, builtin_namespaced, is_patch, parse


def checked(
    schemas: Schemas, call: Call, old: Properties | None, new: Properties
) -> tuple[Properties, list[CheckFailure]]:
    """Inputs with the provider's defaults, and their errors; custom kinds have no schema."""
    failures = misshapen(schemas, call.type, new)
    if call.type == HELM_RELEASE:
        inputs, more = helm.check(call, old, new)
        return inputs, failures + more
    if is_patch(call.type) and not (new.get("metadata") or {}).get("name"):
        failures.append(
            CheckFailure("metadata.name", "patch resources require the `.metadata.name` field to be set")
        )
    inputs = assign_name(call.name, call.random_seed, old, new)
    metadata = inputs.get("metadata")
    default = call.instance.config.get("namespace")
    namespaced = schemas.resource(call.type) is None or builtin_namespaced(parse(call.type).kind)
    if default and namespaced and isinstance(metadata, dict) and not metadata.get("namespace"):
        inputs = {**inputs, "metadata": {**metadata, "namespace": default}}
    return inputs, failures
