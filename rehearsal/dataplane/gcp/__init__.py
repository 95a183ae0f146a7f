"""Google Cloud for running pods and jobs: metadata server, identity, permissions and a few APIs."""
