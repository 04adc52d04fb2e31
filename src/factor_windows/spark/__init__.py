"""Plans on Spark: only what is below here imports pyspark."""
