"""The policy pack, as the Pulumi engine starts it: `pulumi preview --policy-pack policies`."""

import sys
from pathlib import Path

# Started as a folder, Python looks for modules in here first, and would take `resource` for the standard one.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from policies.pack.server import serve

if __name__ == "__main__":
    serve()
