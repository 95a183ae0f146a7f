"""The summary of one run as a single HTML file: no script, no other host, plots as inline SVG (pure)."""
