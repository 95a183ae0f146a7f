"""The emulated Google Cloud: projects, networks, GKE, storage, identities, databases, alerts."""
