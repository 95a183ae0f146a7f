"""Parts of a spec that only AWS has."""
