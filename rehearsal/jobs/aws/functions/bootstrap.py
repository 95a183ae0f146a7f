"""Call the handler of a function: `bootstrap.py HANDLER EVENT RESULT`, started in the folder of its code.

Source: AWS Lambda Developer Guide, "Define Lambda function handler in Python", "Using the Lambda context
object" and "Lambda function exceptions in Python" (the form of errors). Only the standard library: a function
brings its own.
"""

import importlib
import json
import os
import sys
import time
import traceback
import uuid
from pathlib import Path
from typing import Any


class LambdaContext:
    """Context object of a handler."""

    def __init__(self) -> None:
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.function_version = os.environ["AWS_LAMBDA_FUNCTION_VERSION"]
        self.memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self.invoked_function_arn = os.environ["REHEARSAL_FUNCTION_ARN"]
        self.log_group_name = os.environ["AWS_LAMBDA_LOG_GROUP_NAME"]
        self.log_stream_name = os.environ["AWS_LAMBDA_LOG_STREAM_NAME"]
        self.aws_request_id = str(uuid.uuid4())
        self._deadline = time.monotonic() + float(os.environ["REHEARSAL_TIMEOUT_S"])

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the timeout."""
        return max(0, int((self._deadline - time.monotonic()) * 1000))


def main(handler: str, event: str, result: str) -> None:
    """Write `{"value": ...}` or `{"error": ...}` to the file `result`."""
    sys.path.insert(0, str(Path.cwd()))
    # The folder of this file has modules of the rehearsal, which the function must not import.
    sys.path[:] = [
        entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent
    ]
    found: dict[str, Any]
    try:
        module, _, name = handler.rpartition(".")
        function = getattr(importlib.import_module(module.replace("/", ".")), name)
        found = {"value": function(json.loads(Path(event).read_text()), LambdaContext())}
        text = json.dumps(found)
    except BaseException as error:  # every exception is an error of the function
        traceback.print_exc()
        stack = traceback.format_tb(error.__traceback__)
        kind = "Runtime.ImportModuleError" if isinstance(error, ImportError) else type(error).__name__
        described = {"errorMessage": str(error), "errorType": kind, "stackTrace": stack}
        text = json.dumps({"error": described})
    Path(result).write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
