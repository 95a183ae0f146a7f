"""What runs a job of any managed service: a thread, machines, their programs."""
