"""Processes, files and clocks of one node: start, watch, kill and clean up the ranks."""
