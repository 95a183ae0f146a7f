"""Rules about files, buckets and databases."""
