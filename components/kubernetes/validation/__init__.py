"""The validation on a cluster: the gate of a deploy, and its repetition on a schedule."""
