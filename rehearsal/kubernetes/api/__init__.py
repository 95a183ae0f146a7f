"""What the API server does with objects: admission, names, differences, finalizers, waiting."""
