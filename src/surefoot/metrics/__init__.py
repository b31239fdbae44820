"""What a run measures, and where the numbers go: meters, their registry, the console and the log files."""
