"""What a cloud answers about an account: asked once, kept as a snapshot, judged as often as anybody wants."""
