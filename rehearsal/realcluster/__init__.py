"""The rehearsal's Kubernetes against a real control plane instead of the emulation."""
