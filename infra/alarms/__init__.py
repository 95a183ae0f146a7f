"""When a cloud tells people about a stack by itself (pure)."""
