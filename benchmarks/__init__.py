"""Measurements: how quickly plans are found, and how quickly they run."""
