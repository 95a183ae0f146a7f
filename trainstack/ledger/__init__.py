"""The ledger of GPU-hours as people read it."""
