"""What a MeanStdFilter goes by."""

from ray.rllib.connectors.env_to_module import MeanStdFilter


def num_filtered(runner):
    """How many observations a runner's MeanStdFilter has seen."""
    connectors = runner._env_to_module.connectors
    (filter_,) = (c for c in connectors if isinstance(c, MeanStdFilter))
    (statistics,) = filter_.get_state().values()
    return statistics["running_stats"][0]["num_pushes"]


def num_filtered_in_evaluation(algorithm):
    """The same for every runner that evaluates."""
    group = algorithm.eval_env_runner_group
    is_local = group.num_remote_env_runners() == 0
    return group.foreach_env_runner(num_filtered, local_env_runner=is_local)
