"""Physical plans written down for Spark, streams, SQL, Flink and plain Python."""
