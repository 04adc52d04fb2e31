"""Explanations of plans: as text for people, as JSON for programs."""
