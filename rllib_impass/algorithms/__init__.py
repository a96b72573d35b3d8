"""Algorithms: one folder each, built on the actor-learner they share."""
