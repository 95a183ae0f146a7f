"""The Cloud Run function that stops workloads of a used-up budget; standard library only."""
