"""A policy pack without a policy: what the engine itself and the protocol spend on any pack.

It starts as the real one does (`policies/__main__.py`) and answers every question with nothing.
"""

import gc
import sys
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[3])


def main() -> None:
    gc.disable()
    from infra.engine.protocol import leave_out_sdk

    leave_out_sdk()
    import grpc
    from google.protobuf.message_factory import GetMessageClass
    from pulumi.runtime.proto import analyzer_pb2

    from infra.engine.peers import loopback_server

    def nothing(output: Any) -> Any:
        """An empty answer; only a pack has to have a name, and to take a configuration."""
        given = {"name": "empty", "supportsConfig": True} if output.DESCRIPTOR.name == "AnalyzerInfo" else {}

        def answer(request: bytes, context: grpc.ServicerContext) -> Any:
            return output(**given)

        return grpc.unary_unary_rpc_method_handler(answer, response_serializer=output.SerializeToString)

    service = analyzer_pb2.DESCRIPTOR.services_by_name["Analyzer"]
    answered = {
        method.name: nothing(GetMessageClass(method.output_type))
        for method in service.methods
        if method.name != "Remediate"
    }
    server, port = loopback_server(8)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service.full_name, answered)])
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
