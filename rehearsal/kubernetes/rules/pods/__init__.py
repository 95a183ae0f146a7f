"""Rules about pods and their controllers."""
