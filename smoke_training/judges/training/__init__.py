"""Judges of training steps and of the machines that ran them."""
