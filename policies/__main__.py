"""The policy pack, as the Pulumi engine starts it: `pulumi preview --policy-pack policies`."""

import atexit
import gc
import sys
from pathlib import Path

# Started as a folder, Python looks for modules in here first, and would take `resource` for the standard one.
sys.path[0] = str(Path(__file__).resolve().parents[1])

if __name__ == "__main__":
    # The engine waits for this process before it does anything else. `serve` looks for garbage again.
    gc.disable()
    atexit.register(gc.freeze)
    from infra.engine.protocol import leave_out_sdk

    leave_out_sdk()

from policies.pack.server import serve

if __name__ == "__main__":
    serve()
