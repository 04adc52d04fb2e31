"""Windows and how they relate: no SQL, no Spark."""
