"""Folders of clients: data only, run with the installed packages."""
