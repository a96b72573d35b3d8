"""Environments and how they are sampled."""
