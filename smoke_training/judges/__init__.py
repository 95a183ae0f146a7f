"""One judge per check: plan and evidence in, a `Check` out, None without evidence (pure)."""
