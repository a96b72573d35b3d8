"""Experiments: tuned YAML files as Ray Tune runs."""
