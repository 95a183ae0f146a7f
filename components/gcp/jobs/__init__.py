"""Training without a cluster on Google Cloud: network, people, their folders, and a tracking server."""
