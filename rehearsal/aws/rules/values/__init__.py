"""Values that AWS lists, forms of references, runtimes and managed policies."""
