"""Errors of the gRPC provider that the engine sees."""

from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2 as pb

from rehearsal.core.provider import Provider


class _EndedError(Exception):
    """Raised by `abort`, as gRPC does."""


class _Context:
    ended: tuple[grpc.StatusCode, str] | None = None

    def abort(self, code: grpc.StatusCode, text: str) -> None:
        self.ended = (code, text)
        raise _EndedError


def test_the_missing_schema_is_no_bug_of_the_rehearsal() -> None:
    """`pulumi import` asks for it to write code, and shows the text."""
    context, cloud = _Context(), cast(Any, SimpleNamespace(package="aws", version="1.0.0"))
    with pytest.raises(_EndedError):
        Provider(cloud, {}, "log").GetSchema(pb.GetSchemaRequest(), cast(Any, context))
    assert context.ended is not None
    code, text = context.ended
    assert code is grpc.StatusCode.UNIMPLEMENTED and "--generate-code=false" in text
