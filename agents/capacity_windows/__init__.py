"""Opens and closes pools of limited time for Kueue."""
