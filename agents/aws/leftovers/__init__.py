"""AWS Lambda function that cleans up a SageMaker domain before its deletion; standard library and boto3."""
