"""Messages for the engine that take more than a line to build."""

from collections.abc import Iterable

import grpc
from google.protobuf import any_pb2, struct_pb2
from pulumi.runtime.proto import provider_pb2, status_pb2

from rehearsal.core.model import CheckFailure, Diff, InitFailedError, Properties
from rehearsal.core.properties import at, head
from rehearsal.core.wire import to_struct


def init_failed(failed: InitFailedError, properties: struct_pb2.Struct) -> bytes:
    """Status detail with which the engine keeps a resource that exists but is not ready."""
    detail = any_pb2.Any()
    detail.Pack(
        provider_pb2.ErrorResourceInitFailed(
            id=failed.id,
            properties=properties,
            reasons=failed.reasons,
            inputs=None if failed.inputs is None else to_struct(failed.inputs),
        )
    )
    code = int(grpc.StatusCode.UNKNOWN.value[0])
    return status_pb2.Status(code=code, message=str(failed), details=[detail]).SerializeToString()


def check_failures(
    found: Iterable[CheckFailure], inputs: Properties, name: str
) -> list[provider_pb2.CheckFailure]:
    """Failed checks of the `inputs` that the program gives, as the engine shows them.

    The engine shows the value of the property that a failure names, and knows only those at the top: it would
    show `value {<nil>}` for one that is left out, has an automatic value or lies in a block. As the real
    providers do, such a failure names no property, and its reason ends with the path (pulumi-terraform-bridge
    issue 2307).
    """
    shown = []
    for one in found:
        if not one.property or inputs.get(one.property) is not None:
            shown.append(provider_pb2.CheckFailure(property=one.property, reason=one.reason))
        else:
            end = "" if one.reason.endswith((".", "!", "?")) else "."
            place = f"{name}.{one.property}" if name else one.property
            shown.append(provider_pb2.CheckFailure(reason=f"{one.reason}{end} Examine values at '{place}'."))
    return shown


def diff(found: Diff, old: Properties, new: Properties) -> provider_pb2.DiffResponse:
    """The changes of an update, path by path."""
    kinds = provider_pb2.PropertyDiff
    detailed = {}
    for path in dict.fromkeys((*found.changed, *found.replaces)):
        replaces = path in found.replaces
        if at(old, path) is None:
            kind = kinds.ADD_REPLACE if replaces else kinds.ADD
        elif at(new, path) is None:
            kind = kinds.DELETE_REPLACE if replaces else kinds.DELETE
        else:
            kind = kinds.UPDATE_REPLACE if replaces else kinds.UPDATE
        detailed[path] = kinds(kind=kind, inputDiff=True)
    some = provider_pb2.DiffResponse.DIFF_SOME
    return provider_pb2.DiffResponse(
        changes=some if detailed else provider_pb2.DiffResponse.DIFF_NONE,
        diffs=list(dict.fromkeys(head(path) for path in detailed)),
        replaces=list(dict.fromkeys(head(path) for path in found.replaces)),
        deleteBeforeReplace=found.delete_before_replace,
        hasDetailedDiff=True,
        detailedDiff=detailed,
    )
