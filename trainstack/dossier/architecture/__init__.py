"""The resource graph of an engine as parts in layers, with ways in, data and rights on it."""
