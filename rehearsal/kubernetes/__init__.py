"""The emulated kubernetes provider: one API server's worth of objects per emulated cluster."""
