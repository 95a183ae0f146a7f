"""Cloud services that running pods and jobs call, on loopback ports."""
