"""Commands for agencies: folders of clients, and all of their stacks at once."""
