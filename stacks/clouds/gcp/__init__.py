"""Google Cloud: what layouts need from it, made of components."""
