"""Processes, files and clocks of one node: what starts, watches, kills and cleans up the ranks."""
