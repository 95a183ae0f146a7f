"""Cloud Run services behind Identity-Aware Proxy; an instance starts with the first allowed request."""
