"""Dated facts about clouds, their limits, and checks against them.

One package per cloud, and one for Kubernetes. Facts are rows of TOML with source and date. A value without a
source is absent (None), never guessed and never 0. A check is a pure function of a path and plain values that
yields `infra.errors.Problem`s; the caller passes the path of the value in its own input.
"""
