"""GPUs that do nothing: whoever holds them is told, and stopped after a while (docs/explanation/idle.md)."""
