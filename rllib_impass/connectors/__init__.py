"""ConnectorV2 pieces for RLlib's env-to-module and learner pipelines."""

from rllib_impass.connectors.stack_states import StackStates

__all__ = ["StackStates"]
