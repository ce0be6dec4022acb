"""Where partitions run: in this process; later simulated and on Spark."""
