"""The fast path and RLlib's episode path give the learner the same data."""

import numpy as np
import pytest
import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.env import INPUT_ENV_SINGLE_SPACES
from ray.rllib.env.env_runner import NUM_ENV_STEP_FAILURES_LIFETIME
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME

from configs import small_config
from rllib_impass.env.episode_env_runner import (
    ACTION_SMOOTHNESS,
    NUM_NONFINITE_COLUMNS,
)
from rllib_impass.env.trajectory import Trajectory
from rllib_impass.env.trajectory_env_runner import TrajectoryEnvRunner
from toy_envs import CountingEnv, FaultyEnv


class Spy:
    """A runner that keeps every state its policy acts on."""

    def __init__(self, config):
        config.validate()
        self.runner = TrajectoryEnvRunner(config=config, worker_index=1)
        self.acted_on = []
        forward = self.runner.module.forward_exploration

        def spying_forward(batch, **kwargs):
            self.acted_on.append(np.array(batch[Columns.OBS]))
            return forward(batch, **kwargs)

        self.runner.module.forward_exploration = spying_forward
        # The same weights and the same exploration noise on both paths.
        torch.manual_seed(5)
        for parameter in self.runner.module.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        self.noise = torch.get_rng_state()

    def sample(self, **kwargs):
        torch.set_rng_state(self.noise)
        samples = self.runner.sample(**kwargs)
        self.noise = torch.get_rng_state()
        return samples


def counting_config(num_stacked_states=4, **env_config):
    config = small_config(CountingEnv, **env_config)
    config.env_runners(num_envs_per_env_runner=3, rollout_fragment_length=5)
    return config.training(
        num_stacked_states=num_stacked_states,
        train_batch_size_per_learner=15,
        minibatch_size=5,
    )


def with_episodes(config):
    return config.callbacks(on_episode_end=lambda **kwargs: None)


@pytest.fixture
def make_learner(ray_session):
    learners = []

    def make(config, runner):
        spaces = runner.get_spaces()
        spaces = {
            DEFAULT_MODULE_ID: spaces[DEFAULT_MODULE_ID],
            INPUT_ENV_SINGLE_SPACES: spaces[INPUT_ENV_SINGLE_SPACES],
        }
        learners.append(config.build_learner(spaces=spaces))
        learners[-1].build()
        return learners[-1]

    yield make
    for learner in learners:
        learner.shutdown()


def rows(batch, targets):
    """Valid transitions with their targets, in an order both paths share."""
    columns = [
        batch.states[:-1],
        batch.actions,
        batch.means,
        batch.sigmas,
        batch.rewards[..., None],
        batch.returns[..., None],
        batch.terminated[..., None],
        targets.log_mu[..., None],
        targets.vs[..., None],
        targets.advantages[..., None],
    ]
    table = torch.cat([c.float() for c in columns], dim=-1)[batch.valid].numpy()
    return table[np.lexsort(table[:, ::-1].T)]


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("shape", [(2,), (2, 3)])
def test_both_paths_give_equal_minibatches(make_learner, k, shape):
    fast = Spy(counting_config(k, shape=shape))
    slow = Spy(with_episodes(counting_config(k, shape=shape)))
    learner = make_learner(counting_config(k, shape=shape), fast.runner)
    num_ends = 0
    for _ in range(12):
        (trajectory,) = fast.sample()
        # As many steps as the fast path had, without its auto-reset steps.
        episodes = slow.sample(num_timesteps=trajectory.num_valid_steps)
        num_ends += int((~trajectory.valid).sum())
        fast_batch = learner._make_batch([trajectory])
        slow_batch = learner._make_batch(episodes)
        fast_rows = rows(fast_batch, learner._compute_targets(fast_batch))
        slow_rows = rows(slow_batch, learner._compute_targets(slow_batch))
        assert fast_rows.shape == slow_rows.shape
        # States, actions, behaviour, rewards and flags bit for bit ...
        np.testing.assert_array_equal(fast_rows[:, :-3], slow_rows[:, :-3])
        # ... targets up to the rounding of differently shaped matrix products.
        np.testing.assert_allclose(
            fast_rows[:, -3:], slow_rows[:, -3:], rtol=1e-4, atol=1e-5
        )
    assert num_ends > 10


def test_the_fast_path_trains_on_the_very_states_it_acted_on(make_learner):
    spy = Spy(counting_config())
    learner = make_learner(counting_config(), spy.runner)
    for _ in range(12):
        spy.acted_on.clear()
        (trajectory,) = spy.sample()
        states = learner._make_batch([trajectory]).states[:-1].numpy()
        np.testing.assert_array_equal(states, np.stack(spy.acted_on))


def test_the_episode_path_trains_on_the_very_states_it_acted_on(make_learner):
    spy = Spy(with_episodes(counting_config()))
    learner = make_learner(counting_config(), spy.runner)
    num_steps = 0
    for _ in range(12):
        spy.acted_on.clear()
        batch = learner._make_batch(spy.sample())
        states = batch.states[:-1][batch.valid].numpy()
        num_steps += len(states)
        seen = {row.tobytes() for step in spy.acted_on for row in step}
        assert all(row.tobytes() in seen for row in states)
        assert len({row.tobytes() for row in states}) == len(states)
    assert num_steps >= 12 * 15


@pytest.mark.parametrize(
    ("customize", "reason"),
    [
        (lambda c: None, None),
        (lambda c: c.callbacks(on_train_result=lambda **kw: None), None),
        (lambda c: c.callbacks(on_episode_step=lambda **kw: None), "on_episode_step"),
        (lambda c: c.callbacks(on_sample_end=lambda **kw: None), "on_sample_end"),
        (
            lambda c: c.env_runners(env_to_module_connector=lambda *a, **kw: []),
            "env_to_module_connector",
        ),
        (
            lambda c: c.learners(learner_connector=lambda *a, **kw: []),
            "learner_connector",
        ),
    ],
)
def test_episodes_are_sampled_only_where_somebody_needs_them(customize, reason):
    config = counting_config()
    customize(config)
    why = config.why_episodes()
    assert why is None if reason is None else reason in why


def test_the_runner_reports_what_rllibs_runner_reports(ray_session):
    results = {}
    for name, config in (
        ("fast", counting_config()),
        ("slow", with_episodes(counting_config())),
    ):
        runner = Spy(config).runner
        for _ in range(6):
            runner.sample()
        results[name] = runner.get_metrics()
    fast, slow = results["fast"], results["slow"]
    missing = set(slow) - set(fast)
    # All but what concerns connectors, which the fast path does not have.
    assert all(key.startswith(("env_to_module", "module_to_env")) for key in missing)
    for key in ("episode_return_mean", "episode_len_max", ACTION_SMOOTHNESS):
        assert np.isfinite(fast[key].peek())
    assert fast[NUM_ENV_STEPS_SAMPLED_LIFETIME].peek() < 6 * 15


def evaluation_runner(config):
    evaluation = config.get_evaluation_config_object()
    evaluation.validate()
    return TrajectoryEnvRunner(config=evaluation, worker_index=0)


@pytest.mark.parametrize(("k", "shape"), [(1, (2,)), (4, (2,)), (4, (2, 3))])
def test_evaluation_plays_the_episodes_of_rllibs_loop(k, shape):
    def evaluate(config):
        evaluation = config.get_evaluation_config_object()
        spy = Spy(evaluation)
        # The second evaluation has the episodes of the first, as RLlib's has.
        spy.sample(num_episodes=2, explore=False)
        episodes = spy.sample(num_episodes=5, explore=False)
        return episodes, spy.runner.get_metrics()

    config = counting_config(k, shape=shape)
    episodes, metrics = evaluate(config)
    by_rllib, metrics_by_rllib = evaluate(with_episodes(config.copy(copy_frozen=False)))
    assert len(episodes) == len(by_rllib) == 5
    for ours, theirs in zip(episodes, by_rllib, strict=True):
        assert len(ours) == len(theirs) > 1
        np.testing.assert_array_equal(
            ours.get_observations(), theirs.get_observations()
        )
        np.testing.assert_array_equal(ours.get_actions(), theirs.get_actions())
        np.testing.assert_array_equal(ours.get_rewards(), theirs.get_rewards())
        assert ours.is_terminated == theirs.is_terminated
        assert ours.get_infos() == theirs.get_infos()
    for key in (
        "episode_return_mean",
        "episode_len_mean",
        "episode_return_min",
        ACTION_SMOOTHNESS,
        "num_episodes",
        "num_env_steps_sampled",
    ):
        assert metrics[key].peek() == metrics_by_rllib[key].peek(), key


def test_evaluation_steps_gymnasium_envs_one_at_a_time(ray_session):
    config = small_config("Hopper-v5").env_runners(vector_backend="envpool")
    runner = evaluation_runner(config)
    assert runner.num_envs == 1
    assert "EnvPool" not in repr(runner.env.unwrapped)
    episodes = runner.sample(num_episodes=2, explore=False)
    assert sum(e.is_done for e in episodes) == 2


def test_evaluation_goes_on_with_a_rebuilt_env(tmp_path):
    marker = tmp_path / "raised"
    config = small_config(FaultyEnv, fault="raise", at_step=30, marker=str(marker))
    config.fault_tolerance(restart_failed_sub_environments=True)
    runner = evaluation_runner(config)
    episodes = runner.sample(num_episodes=4, explore=False)
    assert marker.exists()
    assert [len(episode) for episode in episodes] == [20] * 4
    assert runner.get_metrics()[NUM_ENV_STEP_FAILURES_LIFETIME].peek() == 1


def test_evaluation_of_an_env_that_always_fails_ends():
    config = small_config(FaultyEnv, fault="raise", at_step=5)
    config.fault_tolerance(restart_failed_sub_environments=True)
    with pytest.raises(RuntimeError, match="failed 3 times within one fragment"):
        evaluation_runner(config).sample(num_episodes=1, explore=False)


def runner_of_resets_that_fail(path, **faults):
    config = small_config(FaultyEnv, fault="raise_in_reset", **faults)
    config.fault_tolerance(restart_failed_sub_environments=True)
    path(config).validate()
    return TrajectoryEnvRunner(config=config, worker_index=1)


@pytest.mark.parametrize("path", [lambda config: config, with_episodes])
def test_an_env_that_can_never_be_reset_ends_sampling_with_the_cause(path):
    runner = runner_of_resets_that_fail(path)
    with pytest.raises(RuntimeError, match="failed 3 times within one") as raised:
        runner.sample()
    assert isinstance(raised.value.__cause__, ConnectionError)


@pytest.mark.parametrize("path", [lambda config: config, with_episodes])
def test_an_env_that_can_be_reset_the_second_time_is_sampled(path, tmp_path):
    marker = tmp_path / "raised"
    runner = runner_of_resets_that_fail(path, marker=str(marker))
    assert runner.sample()
    assert marker.exists()


def test_a_policy_that_raises_is_not_taken_for_an_env_that_fails():
    runner = evaluation_runner(small_config(CountingEnv))

    def forward(batch):
        raise ArithmeticError("the policy is broken")

    runner.module.forward_inference = forward
    with pytest.raises(ArithmeticError, match="the policy is broken"):
        runner.sample(num_episodes=1, explore=False)


def test_runners_start_from_different_states(ray_session):
    config = small_config("Hopper-v5")
    config.validate()
    first_frames = [
        TrajectoryEnvRunner(config=config, worker_index=i).sample()[0].frames[3]
        for i in (1, 2)
    ]
    starts = np.concatenate(first_frames)
    assert len(np.unique(starts.round(9), axis=0)) == len(starts)


@pytest.mark.parametrize("path", ["fast", "slow"])
@pytest.mark.parametrize("fault", ["nan_observation", "nan_reward"])
def test_non_finite_numbers_of_an_env_go_no_further(ray_session, path, fault):
    config = small_config(FaultyEnv, fault=fault, at_step=3)
    if path == "slow":
        with_episodes(config)
    config.validate()
    runner = TrajectoryEnvRunner(config=config, worker_index=1)
    for _ in range(3):
        for sample in runner.sample():
            if isinstance(sample, Trajectory):
                assert not sample.valid.any()
                assert np.isfinite(sample.frames).all()
            else:
                assert np.isfinite(sample.get_observations()).all()
                assert np.isfinite(sample.get_rewards()).all()
    assert runner.get_metrics()[NUM_NONFINITE_COLUMNS].peek() > 0


@pytest.mark.parametrize("path", ["fast", "slow"])
def test_an_infinite_state_reaches_nobody_through_later_stacks(
    ray_session, make_learner, tmp_path, path
):
    config = small_config(
        FaultyEnv, fault="inf_observation", at_step=8, marker=str(tmp_path / "once")
    )
    if path == "slow":
        with_episodes(config)
    config.validate()
    runner = TrajectoryEnvRunner(config=config, worker_index=1)
    learner = make_learner(config, runner)
    num_delivered = 0
    for _ in range(4):
        samples = runner.sample()
        if samples:
            batch = learner._make_batch(samples)
            assert torch.isfinite(batch.states[:-1][batch.valid]).all()
            num_delivered += int(batch.valid.sum())
    assert (tmp_path / "once").exists()
    metrics = runner.get_metrics()
    assert metrics[NUM_NONFINITE_COLUMNS].peek() == 2
    assert metrics[NUM_ENV_STEPS_SAMPLED_LIFETIME].peek() == num_delivered


def test_a_training_runner_samples_fragments_only(ray_session):
    config = small_config()
    config.validate()
    runner = TrajectoryEnvRunner(config=config, worker_index=1)
    with pytest.raises(ValueError, match="one fragment of 32 steps"):
        runner.sample(num_episodes=1)


def test_the_actor_carries_no_critic(ray_session):
    config = small_config()
    config.validate()
    runner = TrajectoryEnvRunner(config=config, worker_index=1)
    assert not hasattr(runner.module, "critic")
    assert not any("critic" in name for name in runner.module.state_dict())
    assert runner.module.observation_space.shape == (16,)
    assert isinstance(runner.sample()[0], Trajectory)
