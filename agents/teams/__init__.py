"""Programs of the namespaces of teams."""
