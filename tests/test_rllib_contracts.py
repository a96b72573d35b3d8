"""The private seams of RLlib that this package leans on.

Each test fails on a Ray upgrade that moves its seam, before anything subtler does.
"""

import inspect
import math

import numpy as np
import pytest
import ray
from ray import tune
from ray.air.integrations.wandb import WandbLoggerCallback, _WandbLoggingActor
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.impala import IMPALA, IMPALAConfig
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.common.numpy_to_tensor import NumpyToTensor
from ray.rllib.connectors.env_to_module import MeanStdFilter
from ray.rllib.connectors.learner import (
    AddObservationsFromEpisodesToBatch,
    AddOneTsToEpisodesAndTruncate,
)
from ray.rllib.core.learner.learner import Learner
from ray.rllib.core.learner.learner_group import LearnerGroup
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.env.env_runner import ENV_STEP_FAILURE, EnvRunner
from ray.rllib.env.env_runner_state_server import EnvRunnerStateServer
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.actor_manager import FaultAwareApply, FaultTolerantActorManager
from ray.rllib.utils.metrics import WEIGHTS_SEQ_NO
from ray.train._internal.checkpoint_manager import _CheckpointManager
from ray.train._internal.session import _TrainingResult

from configs import small_config
from filter_counts import num_filtered, num_filtered_in_evaluation
from rllib_impass.algorithms.runner_state_server import RunnerStateServer
from rllib_impass.connectors import StackStates


def piece_names(pipeline):
    return [type(connector).__name__ for connector in pipeline.connectors]


def test_a_request_is_tracked_by_its_tag_until_it_is_fetched(ray_session):
    @ray.remote
    class Actor(FaultAwareApply):
        config = None

        def work(self):
            return 1

    manager = FaultTolerantActorManager(
        [Actor.remote()], max_remote_requests_in_flight_per_actor=2
    )
    assert manager.foreach_actor_async("work", tag="a") == 1
    manager.foreach_actor_async("work", tag="b")
    # SampleRequests.collect waits for exactly these references.
    references, _, _ = manager._filter_calls_by_tag("a")
    assert len(references) == 1
    ray.wait(references, num_returns=1, timeout=30)
    (result,) = manager.fetch_ready_async_reqs(tags="a")
    assert result.ok
    assert result.get() == 1
    assert manager._filter_calls_by_tag("a")[0] == []
    assert manager.num_outstanding_async_reqs("b") == 1
    # ActorLearner._learners_have_room counts requests of each actor like this.
    (state,) = manager._remote_actor_states.values()
    assert state.get_num_in_flight_requests() == 1


def test_a_failed_request_is_handed_over_with_its_error(ray_session):
    @ray.remote
    class Actor:
        def apply(self, func, **kwargs):
            raise KeyError("original")

        def ping(self):
            return "pong"

    manager = FaultTolerantActorManager([Actor.remote()])
    manager.foreach_actor_async("anything", tag="a")
    results = list(manager.fetch_ready_async_reqs(tags="a", timeout_seconds=30))
    assert not results[0].ok
    assert "original" in str(results[0].get())
    assert not manager.is_actor_healthy(0)


def test_the_runner_group_keeps_its_manager_under_this_name():
    source = inspect.getsource(ray.rllib.env.env_runner_group.EnvRunnerGroup.__init__)
    assert "self._worker_manager = FaultTolerantActorManager(" in source


def test_learner_groups_pass_over_failed_learners_in_silence():
    # ActorLearner._check_learners speaks up instead.
    source = inspect.getsource(LearnerGroup.update)
    assert "self._worker_manager.foreach_actor_async(" in source
    assert FaultTolerantActorManager.num_healthy_actors
    signature = inspect.signature(FaultTolerantActorManager.foreach_actor_async)
    assert signature.parameters["healthy_only"].default is True


def test_training_data_without_samples_reaches_every_learner():
    data = TrainingData(episodes_refs=[])
    data.validate()
    shards = data.shard(num_shards=2, len_lookback_buffer=1)
    assert [shard.episodes_refs for shard, _ in shards] == [[], []]


def test_training_data_is_split_evenly_over_learners():
    shards = TrainingData(episodes_refs=list("abcd")).shard(num_shards=2)
    assert [shard.episodes_refs for shard, _ in shards] == [["a", "b"], ["c", "d"]]


def test_the_state_server_hands_out_newer_states_only():
    for server in (EnvRunnerStateServer(), RunnerStateServer()):
        server.push({WEIGHTS_SEQ_NO: 3, "rl_module": "w"})
        assert server.pull_if_newer(3) is None
        assert server.pull_if_newer(2)["rl_module"] == "w"


def test_our_state_server_ignores_weights_that_were_overtaken():
    server = RunnerStateServer()
    server.push({WEIGHTS_SEQ_NO: 5, "rl_module": "new"})
    server.push({WEIGHTS_SEQ_NO: 4, "rl_module": "old"})
    assert server.pull_if_newer(0)["rl_module"] == "new"


@pytest.mark.parametrize("num_evaluating", [0, 1])
def test_rllib_evaluates_without_the_connector_states_of_training(
    build, num_evaluating
):
    # share_connector_states brings them; once this fails, nobody has to.
    config = PPOConfig().environment("Pendulum-v1")
    config.env_runners(
        num_env_runners=0,
        env_to_module_connector=lambda *args, **kwargs: MeanStdFilter(),
    )
    config.training(train_batch_size_per_learner=1000, num_epochs=1)
    config.evaluation(
        evaluation_interval=10,
        evaluation_duration=1,
        evaluation_num_env_runners=num_evaluating,
    )
    algorithm = build(config)
    algorithm.train()
    algorithm.evaluate()
    assert num_filtered(algorithm.env_runner) >= 1000
    # One episode of 200 steps.
    (num_evaluated_with,) = num_filtered_in_evaluation(algorithm)
    assert num_evaluated_with < 300


def test_our_state_server_merges_its_two_writers():
    server = RunnerStateServer()
    server.push_connector_states({"env_to_module_connector": "c1"})
    assert server.pull_if_newer(0) is None
    server.push({WEIGHTS_SEQ_NO: 1, "rl_module": "w1"})
    server.push_connector_states({"env_to_module_connector": "c2"})
    state = server.pull_if_newer(0)
    assert state["rl_module"] == "w1"
    assert state["env_to_module_connector"] == "c2"
    assert state[WEIGHTS_SEQ_NO] == 1


def test_runners_pull_from_this_attribute_before_they_sample():
    source = inspect.getsource(SingleAgentEnvRunner.sample)
    pull = source.index("self._env_runner_state_server.pull_if_newer.remote(")
    assert pull < source.index("self._sample(")
    source = inspect.getsource(IMPALA.restore_env_runners)
    assert "env_runner._env_runner_state_server = server" in source


def test_a_failed_env_step_is_announced_by_this_string():
    assert isinstance(ENV_STEP_FAILURE, str)
    assert "return ENV_STEP_FAILURE" in inspect.getsource(EnvRunner._try_env_step)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (SingleAgentEnvRunner, "_sample"),
        (SingleAgentEnvRunner, "_increase_sampled_metrics"),
        (SingleAgentEnvRunner, "_log_episode_metrics"),
        (EnvRunner, "_try_env_reset"),
        (EnvRunner, "_log_env_steps"),
        (EnvRunner, "sample_get_state_and_metrics"),
        (LearnerGroup, "_get_results"),
        (Algorithm, "_before_evaluate"),
        (TorchLearner, "_make_modules_ddp_if_necessary"),
        (Learner, "_log_trainable_parameters"),
        (Learner, "before_gradient_based_update"),
        (Learner, "after_gradient_based_update"),
        (Algorithm, "_get_env_id_and_creator"),
        (Algorithm, "_should_create_evaluation_env_runners"),
        (IMPALAConfig, "_value_error"),
    ],
)
def test_what_we_call_or_override_exists(owner, name):
    assert callable(getattr(owner, name))


@pytest.mark.parametrize(
    "name",
    [
        "_env_to_module_connector",
        "_module_to_env_connector",
        "_learner_connector",
        "_model_config",
        "callbacks_on_episode_end",
        "callbacks_class",
    ],
)
def test_what_the_user_added_is_found_under_these_attributes(name):
    assert hasattr(IMPALAConfig(), name)


def test_states_are_stacked_before_rllib_looks_at_observations():
    config = small_config()
    config.validate()
    learner = piece_names(config.build_learner_connector(None, None))
    assert (
        learner.index(AddOneTsToEpisodesAndTruncate.__name__)
        < learner.index(StackStates.__name__)
        < learner.index(AddObservationsFromEpisodesToBatch.__name__)
        < learner.index(NumpyToTensor.__name__)
    )
    observation_space, action_space = config._spaces()
    spaces = {"__env_single__": (observation_space, action_space)}
    acting = config.build_env_to_module_connector(spaces=spaces)
    names = piece_names(acting)
    assert names.index(StackStates.__name__) < names.index(
        AddObservationsFromEpisodesToBatch.__name__
    )
    assert acting.observation_space.shape == (16,)


def test_a_users_connector_runs_before_the_stacking():
    from ray.rllib.connectors.env_to_module import MeanStdFilter

    config = small_config().env_runners(
        env_to_module_connector=lambda *args, **kwargs: MeanStdFilter()
    )
    observation_space, action_space = config._spaces()
    spaces = {"__env_single__": (observation_space, action_space)}
    names = piece_names(config.build_env_to_module_connector(spaces=spaces))
    assert names.index("MeanStdFilter") < names.index(StackStates.__name__)


def test_a_cut_keeps_the_lookback_it_is_asked_for():
    episode = SingleAgentEpisode()
    episode.add_env_reset(np.zeros(1))
    for t in range(6):
        episode.add_env_step(np.full(1, t + 1.0), np.zeros(1), 0.0)
    rest = episode.cut(len_lookback_buffer=3)
    assert len(rest) == 0
    assert rest.t_started == 6
    kept = rest.get_observations(slice(-3, 1), neg_index_as_lookback=True)
    assert [float(x[0]) for x in kept] == [3.0, 4.0, 5.0, 6.0]


def test_learners_ignore_weights_that_are_not_newer():
    # AsyncLearner.set_state works around exactly this.
    source = inspect.getsource(Learner.set_state)
    assert "self._weights_seq_no < weights_seq_no" in source


def test_runners_ignore_weights_that_are_not_newer():
    # `make_runner` builds a new one for each checkpoint because of this.
    source = inspect.getsource(SingleAgentEnvRunner.set_state)
    assert "self._weights_seq_no < weights_seq_no" in source


def test_every_evaluation_by_episodes_starts_from_the_runners_seed():
    source = inspect.getsource(SingleAgentEnvRunner._sample)
    again = "if num_episodes is not None:\n            self._needs_initial_reset = True"
    assert again in source
    source = inspect.getsource(SingleAgentEnvRunner._reset_envs)
    assert "seed=self._seed if self._needs_initial_reset else None" in source
    source = inspect.getsource(EnvRunner.__init__)
    assert "1e6 * self.config.in_evaluation" in source


def test_evaluation_begins_with_our_hook_and_then_takes_the_weights():
    source = inspect.getsource(Algorithm.evaluate)
    assert source.index("self._before_evaluate()") < source.index("sync_weights(")


def test_checkpoints_name_their_class_and_hold_the_configs_state():
    source = inspect.getsource(Algorithm.get_ctor_args_and_kwargs)
    assert "self.config.get_state()" in source
    assert Algorithm.STATE_FILE_NAME == "algorithm_state"
    assert Algorithm.METADATA_FILE_NAME == "rllib_checkpoint.json"
    assert Algorithm.CLASS_AND_CTOR_ARGS_FILE_NAME == "class_and_ctor_args.pkl"


def test_a_trial_keeps_the_storage_that_its_algorithm_is_built_with():
    # StudyTrial hands it on; without one, an algorithm makes a folder among all runs.
    assert "self._storage = storage" in inspect.getsource(tune.Trainable.__init__)
    logdir = inspect.getsource(tune.Trainable._setup_logdir)
    assert "self._storage.trial_working_directory" in logdir
    assert "kwargs" in inspect.signature(Algorithm.__init__).parameters


def test_tune_looks_for_a_checkpoints_score_at_the_top_of_a_result_only():
    # CheckpointScore puts it there, and NaN where nothing was evaluated yet.
    source = inspect.getsource(_CheckpointManager.register_checkpoint)
    assert "score_attr in checkpoint_result.metrics" in source
    manager = _CheckpointManager(tune.CheckpointConfig(checkpoint_score_attribute="x"))
    ranked = [_TrainingResult(None, {"x": x}) for x in (math.nan, -1e9, 2.0)]
    for result in (ranked[1], ranked[0], ranked[2]):
        manager.register_checkpoint(result)
    assert manager.best_checkpoint_results == ranked


def test_rays_wandb_callback_takes_the_actor_class_that_it_is_given():
    # WandbLogging sets one that has no key in its runtime_env.
    source = inspect.getsource(WandbLoggerCallback._start_logging_actor)
    made, used = source.split("self._trial_queues[trial] = Queue")
    assert made.index("if not self._remote_logger_class:") < made.index("runtime_env")
    assert "runtime_env" not in used
    assert "self._trial_logging_futures[trial] = logging_future" in used
    assert "self._logging_future_to_trial[logging_future] = trial" in used


def test_rays_wandb_callback_forgets_what_has_ended():
    source = inspect.getsource(WandbLoggerCallback._cleanup_logging_actor)
    assert "del self._trial_queues[trial]" in source
    assert "del self._trial_logging_futures[trial]" in source


def test_rays_wandb_actor_keeps_the_arguments_of_init_for_later():
    source = inspect.getsource(_WandbLoggingActor.__init__)
    assert "self.kwargs = kwargs" in source
    assert "wandb.init(" not in source
