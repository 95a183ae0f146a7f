"""Committed GPU capacity against its use and its queue: utilization, forecast, advice."""
