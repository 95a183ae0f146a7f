"""Parts of layouts with one or several Kubernetes clusters."""
