"""Plans made visible: as text for people, as JSON for programs."""
