"""Aggregate functions, their states, and the SQL that users write."""
