"""What a budget that is used up does, on every cloud; the standard library only, for it runs in functions."""
