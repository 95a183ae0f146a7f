"""Mail alerts of Cloud Monitoring: policies, log lines of pods, storage."""
