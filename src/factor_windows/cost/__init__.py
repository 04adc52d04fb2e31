"""What a plan costs: the paper's model, Spark's, and its prices."""
