"""CloudWatch Logs: where the lines of jobs and functions are kept, and how boto3 reads them."""
