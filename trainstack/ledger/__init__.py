"""The ledger of GPU-hours, as tables and documents."""
