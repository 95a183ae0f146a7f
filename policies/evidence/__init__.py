"""Evidence bundle of an audit: files with all of it, the same bytes for the same audit."""
