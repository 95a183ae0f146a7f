"""The part of AWS that running pods call: identity, tokens and secrets, on a loopback port."""
