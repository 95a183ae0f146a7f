"""S3 over HTTP, on the folders in which emulated buckets lie."""
