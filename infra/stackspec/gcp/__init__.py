"""Parts of a spec that only Google Cloud has."""
