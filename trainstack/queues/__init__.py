"""What waits in the queues of a stack, since when, why, until when: read from its cluster, kept nowhere."""
