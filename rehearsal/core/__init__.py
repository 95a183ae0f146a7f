"""What every emulated cloud shares: the provider towards the engine, state, journal, faults, rules."""
