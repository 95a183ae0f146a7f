"""Opens and closes pools with capacity windows for Kueue."""
