"""Programs of other people, rehearsed: read, given a workspace of their own, run, reported."""
