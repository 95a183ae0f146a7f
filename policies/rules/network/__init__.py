"""NET: networks, and the fabric between accelerators."""
