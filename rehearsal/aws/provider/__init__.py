"""Facts of the AWS provider: `changes.json`, read out of its source (`core.emulation.changes`)."""
