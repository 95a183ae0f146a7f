"""Published performance of fabrics: tables per cloud, and an exact lookup (pure)."""
