"""What `factor-windows demo` runs and shows."""
