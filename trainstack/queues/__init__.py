"""The queues of a stack, read from its cluster: running and waiting jobs, reasons, estimated starts."""
