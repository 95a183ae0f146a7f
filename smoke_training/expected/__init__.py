"""What fabrics are known to reach: tables per cloud, and a lookup that never guesses (pure)."""
