"""GPU: accelerators, their number, how nodes with them run and stop."""
