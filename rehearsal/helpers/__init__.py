"""Helper providers that need no cloud: `random` and `tls` compute what they promise, on this machine."""
