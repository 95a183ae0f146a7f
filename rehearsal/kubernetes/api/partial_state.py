"""State that the engine keeps of an object that exists but is not as requested.

Sources: pulumi/pulumi-kubernetes provider/pkg/provider/provider.go (Create, Read, Update, Diff,
partialError); pulumi/pulumi pkg/engine/update.go (OnResourceStepPost): after a failed update
the engine keeps the old inputs and the new outputs.
"""

from collections.abc import Mapping
from typing import Any

from rehearsal.core.model import Call, InitFailedError, Properties, RefusalError
from rehearsal.kubernetes.api.awaits import GaveUpError
from rehearsal.kubernetes.diffs import normalized, prune
from rehearsal.kubernetes.kinds import ObjectKind

# The provider stores its inputs in the outputs and prunes the live object by them.
_INPUTS = "__inputs"
_LIVE = "failed to fully initialize or become live"


def created(call: Call, id: str, live: Properties, error: GaveUpError) -> InitFailedError:
    """Error of a new object that is not ready."""
    intro = f'resource "{call.urn}" was successfully created, but the Kubernetes API server reported that it'
    return InitFailedError(id, live, [f"{intro} {_LIVE}: {error.headline}", *error.details])


def updated(
    id: str, live: Properties, inputs: Properties, error: GaveUpError | RefusalError
) -> InitFailedError:
    """Error of a changed object that is not ready, and of a refused change."""
    intro = f'the Kubernetes API server reported that "{id}" {_LIVE}'
    headline, more = (error.headline, error.details) if isinstance(error, GaveUpError) else (str(error), [])
    return InitFailedError(id, {**live, _INPUTS: _shape(inputs)}, [f"{intro}: {headline}", *more])


def asked(old_inputs: Properties, old_outputs: Properties) -> Properties:
    """The last inputs of the object, by which the provider prunes the live object."""
    found: Properties = old_outputs.get(_INPUTS) or old_inputs
    return found


def seen(kind: ObjectKind, live: Properties, inputs: Properties) -> Properties:
    """Inputs after a refresh: the live values of fields that the engine has."""
    if inputs.get("stringData"):  # only the engine knows which of them are secret, by name
        return inputs
    found: Properties = prune(normalized(kind, live), normalized(kind, inputs))
    return found


def _shape(value: Any) -> Any:
    """Property names without values, which may be secret."""
    if isinstance(value, Mapping):
        return {name: _shape(inner) for name, inner in value.items()}
    return [_shape(inner) for inner in value] if isinstance(value, list) else True
