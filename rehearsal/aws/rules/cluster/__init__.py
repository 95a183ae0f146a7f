"""Rules about EKS and the machines of its nodes."""
