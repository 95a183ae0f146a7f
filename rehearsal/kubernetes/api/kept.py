"""What an engine keeps of an object that exists and is not as it was asked for, and what comes of it.

Sources: pulumi/pulumi-kubernetes provider/pkg/provider/provider.go (Create, Read, Update, Diff,
partialError); pulumi/pulumi pkg/engine/update.go (OnResourceStepPost): of an update that failed the engine
keeps the old inputs and the new outputs.
"""

from collections.abc import Mapping
from typing import Any

from rehearsal.core.model import Call, InitFailedError, Properties, RefusalError
from rehearsal.kubernetes.api.awaits import GaveUpError
from rehearsal.kubernetes.api.diffs import normalized, prune
from rehearsal.kubernetes.kinds import Kind

# The provider keeps its inputs beside the outputs and looks at the live object through them.
_INPUTS = "__inputs"
_LIVE = "failed to fully initialize or become live"


def created(call: Call, id: str, live: Properties, error: GaveUpError) -> InitFailedError:
    """The error of a new object that is not ready."""
    said = f'resource "{call.urn}" was successfully created, but the Kubernetes API server reported that it'
    return InitFailedError(id, live, [f"{said} {_LIVE}: {error.headline}", *error.details])


def updated(
    id: str, live: Properties, inputs: Properties, error: GaveUpError | RefusalError
) -> InitFailedError:
    """The error of a changed object that is not ready, and of a change that the API server refuses."""
    said = f'the Kubernetes API server reported that "{id}" {_LIVE}'
    words, more = (error.headline, error.details) if isinstance(error, GaveUpError) else (str(error), [])
    return InitFailedError(id, {**live, _INPUTS: _shape(inputs)}, [f"{said}: {words}", *more])


def asked(old_inputs: Properties, old_outputs: Properties) -> Properties:
    """The inputs through which the provider looks at the live object: the last ones that it was given."""
    found: Properties = old_outputs.get(_INPUTS) or old_inputs
    return found


def seen(kind: Kind, live: Properties, inputs: Properties) -> Properties:
    """The inputs that a refresh finds: what is live of those that the engine has."""
    if inputs.get("stringData"):  # only the engine knows which of them are secret, and by their names
        return inputs
    found: Properties = prune(normalized(kind, live), normalized(kind, inputs))
    return found


def _shape(value: Any) -> Any:
    """Which properties there are, without their values: some may be secret."""
    if isinstance(value, Mapping):
        return {name: _shape(inner) for name, inner in value.items()}
    return [_shape(inner) for inner in value] if isinstance(value, list) else True
