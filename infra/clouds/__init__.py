"""Clients of cloud and cluster APIs: logins and requests."""
