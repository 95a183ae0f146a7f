"""REP: the same again tomorrow, from the same parts."""
