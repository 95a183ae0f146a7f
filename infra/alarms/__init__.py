"""Conditions of alarms that the cloud itself raises (pure)."""
