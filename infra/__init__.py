"""The stack on paper (spec, catalog, cost, outputs), managed jobs, the engine driver and foundations."""
