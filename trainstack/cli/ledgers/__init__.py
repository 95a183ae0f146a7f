"""Sources of hours, queues and reservations for `trainstack capacity`."""
