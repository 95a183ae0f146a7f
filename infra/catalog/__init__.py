"""Dated facts about clouds, their limits, and the checks that follow from them: the only home of each.

One package per cloud, and one for Kubernetes. Facts are rows of TOML with source and date. What no source
says is absent (None), never guessed and never 0. A check is a pure function of a path and plain values that
yields `infra.errors.Problem`s; the caller gives the path that its users know.
"""
