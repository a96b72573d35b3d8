"""Evaluation sees what training sees: the states of connectors, brought there."""

from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core import (
    COMPONENT_ENV_TO_MODULE_CONNECTOR,
    COMPONENT_MODULE_TO_ENV_CONNECTOR,
)
from ray.rllib.utils.typing import StateDict

_COMPONENTS = (COMPONENT_ENV_TO_MODULE_CONNECTOR, COMPONENT_MODULE_TO_ENV_CONNECTOR)


def share_connector_states(algorithm: Algorithm, **kwargs: Any) -> None:
    """Hands training's connector states to evaluation runners; ``on_evaluate_start``.

    RLlib sends them right behind the weights, and drops them if the weights are still
    on their way, the limit being one message; to a local evaluation runner it does not
    send them at all. A ``MeanStdFilter`` then normalises by the few observations of the
    evaluation itself, and the policy sees states that it was never trained on.
    """
    group = algorithm.eval_env_runner_group
    if group is None:
        return
    states = _connector_states(algorithm)
    # Unlike RLlib's, this call is answered before anything else is asked.
    group.foreach_env_runner(
        lambda runner: runner.set_state(states),
        timeout_seconds=algorithm.config.evaluation_sample_timeout_s,
    )


def _connector_states(algorithm: Algorithm) -> StateDict:
    if algorithm.env_runner is not None:
        state = algorithm.env_runner.get_state(components=_COMPONENTS)
        return {component: state[component] for component in _COMPONENTS}
    # Algorithms without a local EnvRunner keep their connectors themselves.
    connectors = (algorithm.env_to_module_connector, algorithm.module_to_env_connector)
    return {
        component: connector.get_state()
        for component, connector in zip(_COMPONENTS, connectors, strict=True)
    }
