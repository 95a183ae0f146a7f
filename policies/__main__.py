"""Entry point of the policy pack: `pulumi preview --policy-pack policies`."""

import atexit
import gc
import sys
from pathlib import Path

# Started as a folder, Python imports modules from here first, and `resource` would shadow the standard one.
sys.path[0] = str(Path(__file__).resolve().parents[1])

if __name__ == "__main__":
    # The engine waits for the start of this process. `serve` enables garbage collection again.
    gc.disable()
    atexit.register(gc.freeze)
    from infra.engine.protocol import leave_out_sdk

    leave_out_sdk()

from policies.pack.server import serve

if __name__ == "__main__":
    serve()
