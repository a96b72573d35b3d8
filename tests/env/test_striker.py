"""Striker against the facts of the legacy environment, written down here once more."""

import functools
import math
import pickle
import subprocess
import sys
from ctypes.util import find_library

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from ray import cloudpickle
from ray.tune.registry import ENV_CREATOR, _global_registry
from striker_scenes import ENV_ID, IDLE, NUM_EPISODES, bodies, place

from rllib_impass.env.registration import make_env
from rllib_impass.env.striker import StrikerEnv

# --- The contract with gymnasium and Tune ---


@pytest.mark.parametrize(
    "options", [{}, {"strike_position": "frozen"}, {"observe_progress": True}]
)
def test_gymnasiums_checker_accepts_it(options):
    env = gym.make(ENV_ID, **options)
    check_env(env.unwrapped, skip_render_check=True)


def test_spaces_are_the_legacy_ones(env):
    assert env.observation_space.shape == (23,)
    assert env.action_space == gym.spaces.Box(-3.0, 3.0, (7,), np.float32)


def test_episodes_are_cut_after_100_steps_of_50_ms(env):
    env.reset(seed=0)
    ends = [env.step(IDLE)[2:4] for _ in range(100)]
    assert ends == [(False, False)] * 99 + [(False, True)]
    assert env.unwrapped.dt == pytest.approx(0.05)
    assert env.unwrapped.data.time == pytest.approx(5.0)


def test_tune_knows_it_and_hands_env_config_to_the_constructor():
    create = _global_registry.get(ENV_CREATOR, "Striker-v0")
    assert create({}).observation_space.shape == (23,)
    env = create({"observe_progress": True, "strike_position": "frozen"})
    assert env.observation_space.shape == (26,)
    assert env.spec.max_episode_steps == 100


def test_a_worker_that_imported_nothing_can_make_it():
    make = functools.partial(make_env, "Striker-v0")
    code = (
        "import pickle, sys;"
        "make = pickle.loads(sys.stdin.buffer.read());"
        "assert 'mujoco' not in sys.modules;"
        "assert make({}).reset(seed=0)[0].shape == (23,)"
    )
    subprocess.run(
        [sys.executable, "-c", code], input=cloudpickle.dumps(make), check=True
    )


def test_an_unknown_option_is_named():
    with pytest.raises(ValueError, match=r"no option 'observe_progres'; .*_progress"):
        make_env("Striker-v0", {"observe_progres": True})
    with pytest.raises(TypeError, match="observe_progres"):
        gym.make(ENV_ID, observe_progres=True)


@pytest.mark.parametrize(
    ("option", "value"),
    [("strike_position", "forzen"), ("observe_progress", "false")],
)
def test_a_bad_value_of_an_option_is_named(option, value):
    with pytest.raises(ValueError, match=f"{option}='{value}'"):
        StrikerEnv(**{option: value})


def test_a_pickled_env_keeps_its_options():
    env = pickle.loads(pickle.dumps(StrikerEnv(observe_progress=True)))
    assert env.reset(seed=0)[0].shape == (26,)


# --- Actions ---


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_action_that_is_not_finite_is_refused(env, bad):
    env.reset(seed=0)
    action = IDLE.copy()
    action[3] = bad
    with pytest.raises(ValueError, match="action must be finite"):
        env.step(action)


@pytest.mark.parametrize("shape", [(), (6,), (8,), (1, 7)])
def test_an_action_of_another_shape_is_refused(env, shape):
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action must have shape \(7,\)"):
        env.unwrapped.step(np.zeros(shape))


def test_beyond_the_limit_the_torque_saturates_and_the_cost_goes_on(env):
    results = []
    for torque in (3.0, 6.0):
        env.reset(seed=0)
        results.append(env.step(np.full(7, torque, np.float32)))
    (at_limit, *_, info_at), (beyond, *_, info_beyond) = results
    np.testing.assert_array_equal(at_limit, beyond)
    assert info_at["reward_ctrl"] == pytest.approx(-7 * 9)
    assert info_beyond["reward_ctrl"] == pytest.approx(-7 * 36)


# --- Reset and model ---


def test_resets_follow_the_legacy_distribution(env):
    goals = []
    for seed in range(NUM_EPISODES):
        observation, info = env.reset(seed=seed)
        angles, velocities, tip, ball, goal = np.split(observation, [7, 14, 17, 20])
        np.testing.assert_array_equal(angles, np.zeros(7))
        assert np.abs(velocities).max() <= 0.1
        np.testing.assert_allclose(tip, [0.821, -0.6, 0.0], atol=1e-12)
        np.testing.assert_allclose(ball, [0.5, -0.175, -0.27], atol=1e-12)
        assert goal[2] == pytest.approx(-0.323)
        assert info == {
            "distance": pytest.approx(np.linalg.norm(ball[:2] - goal[:2])),
            "is_success": False,
            "ever_inside": False,
        }
        goals.append(goal[:2])
    low, high = np.array([0.15, 0.1]), np.array([0.7, 1.0])
    assert (goals >= low).all()
    assert (goals <= high).all()
    # The ends of the range are reached: 100 uniform draws miss 10 % of it with 0.003 %.
    assert (np.min(goals, axis=0) < low + 0.1 * (high - low)).all()
    assert (np.max(goals, axis=0) > high - 0.1 * (high - low)).all()


def test_the_goal_turns_towards_the_ball_as_far_as_the_legacy_one(env):
    for seed in range(20):
        env.reset(seed=seed)
        _, ball, goal = bodies(env)
        angle = -math.atan((ball[0] - goal[0]) / (ball[1] - goal[1] + 1e-8))
        yaw = 2.0 * math.atan(angle / 3.14)
        fence_side = env.unwrapped.data.body("goal").xmat.reshape(3, 3)[:2, 1]
        np.testing.assert_allclose(
            fence_side, [-math.sin(yaw), math.cos(yaw)], atol=1e-7
        )


def test_arm_and_ball_have_the_legacy_masses(env):
    chain = (
        "shoulder_pan shoulder_lift upper_arm_roll upper_arm elbow_flex forearm_roll"
    )
    chain = [
        *chain.split(),
        "forearm",
        "wrist_flex",
        "wrist_roll",
        "tips_arm",
        "object",
    ]
    masses = [env.unwrapped.model.body(name).mass.item() for name in chain]
    legacy = [7.29, 3.14, 0.086, 1.63, 0.407, 0.086, 0.843, 0.005, 0.086, 0.043, 0.157]
    np.testing.assert_allclose(masses, legacy, atol=6e-4, rtol=2e-3)


def test_a_free_ball_slows_down_as_the_legacy_one(env):
    env.reset(seed=0)
    place(env, ball=(0.0, 0.0), ball_velocity=(-1.0, 0.0))
    for _ in range(100):
        env.step(IDLE)
    # Travel = (mass + armature) / damping * v0.
    assert bodies(env)[1][0] == pytest.approx(-(0.157 + 0.1) / 0.5, abs=0.01)


def test_at_rest_nothing_touches_anything(env):
    for seed in range(10):
        env.reset(seed=seed)
        for _ in range(100):
            assert env.unwrapped.data.ncon == 0
            env.step(IDLE)


def test_the_same_seed_gives_the_same_episode():
    def trajectory(env, **reset):
        rows = [env.reset(**reset)[0]]
        rng = np.random.default_rng(0)
        for _ in range(100):
            observation, reward, *_ = env.step(rng.uniform(-3.0, 3.0, 7))
            rows.append(np.append(observation, reward))
        return np.concatenate(rows)

    one, two = gym.make(ENV_ID), gym.make(ENV_ID)
    first = trajectory(one, seed=7)
    np.testing.assert_array_equal(first, trajectory(two, seed=7))
    second = trajectory(one)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(second, trajectory(two))
    np.testing.assert_array_equal(first, trajectory(one, seed=7))


# --- Rendering ---


@pytest.mark.skipif(find_library("EGL") is None, reason="no EGL to render with")
def test_a_frame_shows_paddle_ball_goal_and_white_fence(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "egl")
    env = gym.make(ENV_ID, render_mode="rgb_array")
    env.reset(seed=0)
    frame = env.render().astype(int)
    assert frame.shape == (480, 640, 3)
    red, green, blue = frame.reshape(-1, 3).T
    assert np.sum((blue > 120) & (red < 60)) > 200, "blue paddle"
    assert np.sum((red > 150) & (green < 120) & (blue < 60)) > 200, "orange ball"
    assert np.sum((red > 200) & (green > 150) & (blue < 90)) > 200, "yellow coaster"

    env.unwrapped.data.mocap_pos[0, 2] = -10.0
    place(env)
    changed = np.any(frame != env.render(), axis=-1)
    assert np.sum(changed & (frame.min(axis=-1) > 200)) > 200, "white fence"
    env.close()
