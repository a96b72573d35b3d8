"""ConnectorV2 pieces for RLlib's pipelines, and what evaluation needs of them."""

from rllib_impass.connectors.evaluation_states import share_connector_states
from rllib_impass.connectors.stack_states import StackStates

__all__ = ["StackStates", "share_connector_states"]
