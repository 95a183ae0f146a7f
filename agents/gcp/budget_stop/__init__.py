"""What runs on Cloud Run functions when a budget tells what was spent; the standard library only."""
