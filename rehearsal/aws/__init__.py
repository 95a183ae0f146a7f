"""The emulated AWS: one generic engine, one table row per type, and functions where a row cannot say it."""
