"""Reports: what runs and benchmarks found, as tables and figures."""
