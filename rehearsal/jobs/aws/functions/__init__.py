"""Lambda: functions whose Python runs."""
