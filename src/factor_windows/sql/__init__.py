"""SQL in, SQL out: queries parsed from text, and plans written as text."""
