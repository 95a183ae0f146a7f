"""Several clusters behind one queue: a manager that queues, workers that run (docs/adr/0093)."""
