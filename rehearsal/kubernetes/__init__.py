"""The emulated kubernetes provider: for each emulated cluster, the objects of its API server."""
