"""Waivers: accepted violations with an owner and an expiry date."""
