"""The emulated AWS: a row per resource type for the generic engine, and hooks for further behavior."""
