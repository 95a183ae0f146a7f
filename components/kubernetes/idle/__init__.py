"""Idle GPUs: their holders are notified, and stopped after a while (docs/explanation/idle.md)."""
