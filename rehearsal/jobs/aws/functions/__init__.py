"""Lambda: functions whose Python really runs."""
