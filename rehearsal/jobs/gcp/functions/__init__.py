"""Cloud Run functions; each call is a process of its own."""
