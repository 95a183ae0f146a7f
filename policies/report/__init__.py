"""Reports of an audit, a module per format."""
