"""The AWS Lambda function that stops workloads of a used-up budget; standard library and boto3 only."""
