"""SQL in, SQL out: queries read from text, and plans written as text."""
