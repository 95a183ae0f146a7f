"""A policy pack without a policy: the floor below every pack, which is the engine's own work and the protocol's.

It starts as the real one does (`policies/__main__.py`) and answers every question with nothing.
"""

import gc
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[3])

if __name__ == "__main__":
    gc.disable()
    from infra.engine.protocol import leave_out_sdk

    leave_out_sdk()

import grpc
from google.protobuf.message_factory import GetMessageClass
from pulumi.runtime.proto import analyzer_pb2

from infra.engine.peers import loopback_server

_SERVICE = analyzer_pb2.DESCRIPTOR.services_by_name["Analyzer"]


def nothing(output: type) -> grpc.RpcMethodHandler:
    """An empty answer to whatever is asked; only a pack has to have a name, and to take a configuration."""
    given = {"name": "empty", "supportsConfig": True} if output.DESCRIPTOR.name == "AnalyzerInfo" else {}
    return grpc.unary_unary_rpc_method_handler(
        lambda request, context: output(**given),
        response_serializer=output.SerializeToString,
    )


def main() -> None:
    server, port = loopback_server(8)
    answered = {
        method.name: nothing(GetMessageClass(method.output_type))
        for method in _SERVICE.methods
        if method.name != "Remediate"
    }
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(_SERVICE.full_name, answered)])
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
