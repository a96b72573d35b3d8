"""Data structures with bounds and counters, free of reinforcement learning."""
