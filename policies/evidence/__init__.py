"""What an auditor keeps of an audit: files that say all of it, the same bytes for the same audit."""
