"""Benchmarks: how fast plans are found, and how fast they run."""
