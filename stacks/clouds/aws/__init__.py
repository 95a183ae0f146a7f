"""AWS: what layouts need from it, made of components."""
