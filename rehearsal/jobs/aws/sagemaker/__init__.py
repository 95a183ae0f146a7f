"""SageMaker's training jobs: what programs ask, and the processes that they become."""
