"""Benchmarks: what training costs, beside stock IMPALA and bare environments."""
