"""JobSet and Kubeflow Trainer."""
