"""GPU: accelerators, pool sizes, and the lifetime of their nodes."""
