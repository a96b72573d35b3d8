"""EnvPool must stay what gymnasium is; bad actions must never arrive."""

import gymnasium as gym
import numpy as np
import pytest
from ray import tune
from ray.tune.registry import ENV_CREATOR, _global_registry

from rllib_impass.env.vector_envs import (
    EnvPoolVectorEnv,
    FiniteActions,
    choose_backend,
    drop_infos,
    to_action_space,
)

envpool = pytest.importorskip("envpool")


def physical_state(env_id, observation, x_position):
    """qpos and qvel of Hopper or Swimmer, whose observation leaves out positions."""
    num_hidden = {"Hopper-v5": 1, "Swimmer-v5": 2}[env_id]
    num_positions = {"Hopper-v5": 6, "Swimmer-v5": 5}[env_id]
    qpos = np.zeros(num_positions)
    qpos[num_hidden:] = observation[: num_positions - num_hidden]
    qpos[0] = x_position
    return qpos, observation[num_positions - num_hidden :]


@pytest.mark.parametrize(
    ("env_id", "tolerance", "num_steps"),
    [("Hopper-v5", 1e-12, 60), ("Swimmer-v5", 1e-9, 200)],
)
def test_envpool_and_gymnasium_step_alike(env_id, tolerance, num_steps):
    pool = envpool.make(env_id, env_type="gymnasium", num_envs=1, seed=3)
    env = gym.make(env_id).unwrapped
    env.reset(seed=0)
    theirs, info = pool.reset()
    state = physical_state(env_id, theirs[0], info["x_position"][0])
    env.set_state(*state)
    np.testing.assert_allclose(env._get_obs(), theirs[0], atol=tolerance)
    rng = np.random.default_rng(0)
    for _ in range(num_steps):
        # Small actions keep Hopper on its leg, away from chaotic contacts.
        action = 0.3 * rng.uniform(-1.0, 1.0, env.action_space.shape)
        ours, reward, terminated, _, _ = env.step(action)
        theirs, their_reward, their_terminated, _, _ = pool.step(action[None])
        np.testing.assert_allclose(ours, theirs[0], atol=tolerance)
        assert reward == pytest.approx(their_reward[0], abs=1e-6)
        assert terminated == their_terminated[0]
        if terminated:
            break
    env.close()


def test_auto_takes_envpool_where_it_is_the_same():
    assert choose_backend("auto", "Hopper-v5", {}).name == "envpool"


@pytest.mark.parametrize(
    ("env", "env_config", "reason"),
    [
        ("Reacher-v5-of-mine", {}, "only ids of gymnasium's registry"),
        ("Hopper-v5", {"ctrl_cost_weight": 1.0}, "ctrl_cost_weight"),
        (gym.Env, {}, "only ids"),
        ("CartPole-v1", {}, "actions"),
        ("Striker-v0", {}, "EnvPool has no Striker-v0"),
        ("HopperPositions-v0", {"width": 64}, "width"),
    ],
)
def test_auto_takes_gymnasium_elsewhere_and_says_why(env, env_config, reason):
    choice = choose_backend("auto", env, env_config)
    assert choice.name == "gymnasium"
    assert reason in choice.reason


def test_an_id_that_tune_knows_is_the_users_env_not_envpools():
    tune.register_env("Swimmer-v5", lambda config: gym.make("Swimmer-v5"))
    try:
        choice = choose_backend("auto", "Swimmer-v5", {})
    finally:
        _global_registry.unregister(ENV_CREATOR, "Swimmer-v5")
    assert choice.name == "gymnasium"
    assert "registered with Tune" in choice.reason
    assert choose_backend("auto", "Swimmer-v5", {}).name == "envpool"


def test_callbacks_get_infos_so_envpool_is_not_taken_for_them():
    choice = choose_backend("auto", "Hopper-v5", {}, "the callback x is set")
    assert choice.name == "gymnasium"
    assert "the callback x is set" in choice.reason


def test_envpool_cuts_episodes_where_gymnasium_does():
    pool = EnvPoolVectorEnv("Swimmer-v5", num_envs=1, seed=0)
    pool.reset()
    flags = [pool.step(np.zeros((1, 2), np.float32))[2:4] for _ in range(1000)]
    assert not any(terminated[0] for terminated, _ in flags)
    assert [truncated[0] for _, truncated in flags] == [False] * 999 + [True]
    pool.close()


def test_insisting_on_envpool_for_an_env_it_lacks_is_an_error():
    with pytest.raises(ValueError, match="vector_backend='envpool' cannot run"):
        choose_backend("envpool", "NoSuchEnv-v0", {})


def test_envpool_env_has_gymnasiums_spaces_and_auto_reset():
    ours = EnvPoolVectorEnv("Hopper-v5", num_envs=3, seed=1)
    theirs = gym.make_vec("Hopper-v5", num_envs=3)
    assert ours.single_action_space == theirs.single_action_space
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"]
    theirs.close()
    ours.reset()
    was_over = np.zeros(3, bool)
    seen = 0
    for _ in range(200):
        actions = np.ones((3, 3), np.float32)
        _, rewards, terminated, truncated, _ = ours.step(actions)
        # The step after an episode's end only resets.
        assert (rewards[was_over] == 0.0).all()
        assert not terminated[was_over].any()
        seen += was_over.sum()
        was_over = terminated | truncated
    assert seen > 3
    ours.close()


def test_an_env_of_ours_that_envpool_has_more_of_is_a_view_of_it():
    assert choose_backend("auto", "HopperPositions-v0", {}).name == "envpool"
    ours = EnvPoolVectorEnv("HopperPositions-v0", num_envs=2, seed=1)
    whole = EnvPoolVectorEnv("Hopper-v5", num_envs=2, seed=1)
    reference = gym.make("rllib_impass/HopperPositions-v0")
    assert ours.single_observation_space == reference.observation_space
    (seen, _), (all_of_it, _) = ours.reset(), whole.reset()
    actions = np.full(ours.action_space.shape, 0.1, np.float32)
    for _ in range(30):  # past the end of an episode
        assert seen.shape == ours.observation_space.shape
        np.testing.assert_array_equal(seen, all_of_it[:, :5])
        seen, *rest, _ = ours.step(actions)
        all_of_it, *their_rest, _ = whole.step(actions)
        for mine, theirs in zip(rest, their_rest, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_different_seeds_start_differently_and_equal_seeds_alike():
    first, _ = EnvPoolVectorEnv("Hopper-v5", num_envs=2, seed=1).reset()
    again, _ = EnvPoolVectorEnv("Hopper-v5", num_envs=2, seed=1).reset()
    other, _ = EnvPoolVectorEnv("Hopper-v5", num_envs=2, seed=5).reset()
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
def test_non_finite_actions_never_reach_a_vector_env(backend, bad):
    env = (
        EnvPoolVectorEnv("Hopper-v5", num_envs=3, seed=1)
        if backend == "envpool"
        else gym.make_vec("Hopper-v5", num_envs=3)
    )
    guarded = FiniteActions(env)
    guarded.reset()
    actions = np.zeros((3, 3), np.float32)
    actions[1, 2] = bad
    observations, *_ = guarded.step(actions)
    assert np.isfinite(observations).all()
    assert guarded.num_nonfinite_actions == 1
    assert not np.isfinite(actions[1, 2]), "the caller's array stays as it was"
    guarded.close()


def test_a_vector_env_without_infos_steps_alike():
    kept, dropped = (gym.make_vec("Hopper-v5", num_envs=2) for _ in range(2))
    drop_infos(dropped)
    np.testing.assert_array_equal(kept.reset(seed=3)[0], dropped.reset(seed=3)[0])
    num_ends = 0
    for _ in range(60):
        actions = np.ones((2, 3), np.float32)
        *transition, infos = kept.step(actions)
        *same, no_infos = dropped.step(actions)
        for ours, theirs in zip(same, transition, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert no_infos == {}
        assert infos, "there is something to drop"
        num_ends += transition[2].sum()
    assert num_ends > 0
    kept.close()
    dropped.close()


def test_actions_are_fitted_to_the_space():
    space = gym.spaces.Box(
        np.array([-2.0, 0.0]), np.array([2.0, 1.0]), dtype=np.float64
    )
    actions = np.array([[-1.0, -1.0], [0.0, 0.0], [3.0, 3.0], [-3.0, 0.5]])
    unsquashed = to_action_space(space, normalize=True, clip=False)(actions)
    np.testing.assert_allclose(
        unsquashed, [[-2.0, 0.0], [0.0, 0.5], [2.0, 1.0], [-2.0, 0.75]]
    )
    clipped = to_action_space(space, normalize=False, clip=True)(actions)
    np.testing.assert_allclose(clipped, [[-1, 0], [0, 0], [2, 1], [-2, 0.5]])
    raw = to_action_space(space, normalize=False, clip=False)(actions)
    np.testing.assert_array_equal(raw, actions)
