"""D4PG, and Ape-X DPG on the same base."""

from rllib_impass.algorithms.d4pg.d4pg import D4PG, ApexDPG, ApexDPGConfig, D4PGConfig

__all__ = ["D4PG", "ApexDPG", "ApexDPGConfig", "D4PGConfig"]
