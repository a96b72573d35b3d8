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

import rllib_impass  # noqa: F401  (registers the env)
from rllib_impass.env.registration import make_env
from rllib_impass.env.striker import StrikerEnv
from rllib_impass.ops.striker_reward import StrikerProgress, striker_reward

ENV_ID = "rllib_impass/Striker-v0"
IDLE = np.zeros(7, np.float32)
NUM_EPISODES = 100

BODIES = ("tips_arm", "object", "goal")

REST_ARM = np.zeros(7)
# The shoulder turned so far down that the tip is as high above the table as the ball.
LOW_ARM = np.array([0.0, math.asin(0.27 / 0.721), 0.0, 0.0, 0.0, 0.0, 0.0])


@pytest.fixture
def env():
    env = gym.make(ENV_ID)
    yield env
    env.close()


def bodies(env):
    """Tip, ball and goal."""
    return tuple(env.unwrapped.data.body(name).xpos.copy() for name in BODIES)


def place(env, *, arm=REST_ARM, ball=None, ball_velocity=(0.0, 0.0)):
    """Sets the arm's posture, at rest, and the ball's (x, y); returns the bodies."""
    ball = bodies(env)[1][:2] if ball is None else ball
    qpos = np.concatenate([arm, ball[::-1]])
    qvel = np.concatenate([np.zeros(7), ball_velocity[::-1]])
    env.unwrapped.set_state(qpos, qvel)
    return bodies(env)


def strike(env, gap):
    """Acts with the ball this far from the tip, then takes the arm away."""
    tip, *_ = place(env, arm=LOW_ARM)
    place(env, arm=LOW_ARM, ball=(tip[0] + gap, tip[1]))
    env.step(IDLE)
    return place(env)


def launch(env, speed):
    """Sends the ball straight towards the goal's centre."""
    _, ball, goal = bodies(env)
    way = goal[:2] - ball[:2]
    place(env, ball_velocity=speed * way / np.linalg.norm(way))


def play(env, seed, policy=lambda: IDLE, speed=None):
    """Plays one episode; returns its return and its last info."""
    env.reset(seed=seed)
    if speed is not None:
        launch(env, speed)
    total, truncated = 0.0, False
    while not truncated:
        _, reward, terminated, truncated, info = env.step(policy())
        assert not terminated
        total += reward
    return total, info


def slow_reward(history, action, strike_position):
    """The reward in the last state of a history of (tip, ball, goal), and its terms."""

    def distance(a, b):
        return sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5

    tip, ball, _ = history[-1]
    r_dist = -min(distance(b, g) for _, b, g in history)
    r_ctrl = -sum(float(a) ** 2 for a in action)
    strikes = [t for t, b, _ in history if distance(b, t) < 0.1]
    is_frozen = strike_position == "frozen" and strikes
    r_near = -distance(ball, strikes[-1] if is_frozen else tip)
    return 3 * r_dist + 0.1 * r_ctrl + 0.5 * r_near, r_dist, r_ctrl, r_near


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


# --- Reward ---


@pytest.mark.parametrize("strike_position", ["alias", "frozen"])
def test_the_reward_equals_the_formula_on_random_states(strike_position):
    rng = np.random.default_rng(0)
    for _ in range(50):
        progress, history = StrikerProgress(), []
        for _ in range(20):
            # Close enough together that about every other state is a strike.
            tip, ball, goal = rng.uniform(-0.08, 0.08, (3, 3))
            action = rng.uniform(-4.0, 4.0, 7)
            history.append((tip.copy(), ball, goal))
            progress = progress.after(tip, ball, goal)
            # The simulator's memory moves on; a strike's position must not.
            tip += 1.0
            reward = striker_reward(
                history[-1][0],
                ball,
                action,
                progress,
                is_frozen=strike_position == "frozen",
            )
            expected = slow_reward(history, action, strike_position)
            np.testing.assert_allclose(reward, expected, rtol=1e-12)


@pytest.mark.parametrize("strike_position", ["alias", "frozen"])
def test_the_envs_reward_is_that_of_the_state_acted_in(strike_position):
    env = gym.make(ENV_ID, strike_position=strike_position)
    low, high = env.unwrapped.model.jnt_range[:7].T
    rng = np.random.default_rng(1)
    num_strikes = 0
    for seed in range(30):
        env.reset(seed=seed)
        arm = np.clip(LOW_ARM + rng.uniform(-0.2, 0.2, 7), low, high)
        tip, *_ = place(env, arm=arm)
        place(env, arm=arm, ball=tip[:2] + rng.uniform(-0.15, 0.15, 2))
        history = []
        for _ in range(10):
            history.append(bodies(env))
            action = rng.uniform(-4.0, 4.0, 7)
            _, reward, *_, info = env.step(action)
            terms = [info[f"reward_{name}"] for name in ("dist", "ctrl", "near")]
            expected = slow_reward(history, action, strike_position)
            np.testing.assert_allclose([reward, *terms], expected, rtol=1e-12)
        num_strikes += any(math.dist(tip, ball) < 0.1 for tip, ball, _ in history)
    assert 5 <= num_strikes <= 25


@pytest.mark.parametrize(("gap", "is_strike"), [(0.0999, True), (0.1001, False)])
def test_a_strike_is_closer_than_ten_centimetres(gap, is_strike):
    tip, ball, goal = np.zeros(3), np.array([0.0, gap, 0.0]), np.ones(3)
    progress = StrikerProgress().after(tip, ball, goal)
    assert (progress.strike_position is not None) == is_strike


@pytest.mark.parametrize("gap", [0.098, 0.102])
@pytest.mark.parametrize("strike_position", ["alias", "frozen"])
def test_after_a_strike_only_frozen_forgets_the_tip(strike_position, gap):
    env = gym.make(ENV_ID, strike_position=strike_position)
    env.reset(seed=0)
    tip, ball, _ = strike(env, gap)
    near = env.step(IDLE)[4]["reward_near"]
    is_frozen = strike_position == "frozen" and gap < 0.1
    assert near == pytest.approx(-gap if is_frozen else -math.dist(ball, tip), abs=1e-6)


def test_progress_makes_the_reward_a_function_of_the_observation():
    env = gym.make(ENV_ID, observe_progress=True)
    observation, _ = env.reset(seed=0)
    launch(env, 2.0)
    for t in range(100):
        min_distance, struck, time_left = observation[23:]
        assert time_left == pytest.approx(1.0 - t / 100)
        assert struck == 0.0
        observation, *_, info = env.step(IDLE)
        assert info["reward_dist"] == pytest.approx(-min_distance)
    assert observation[25] == pytest.approx(0.0)
    assert observation[23] < 0.1


def test_progress_remembers_a_strike_until_the_next_episode():
    env = gym.make(ENV_ID, observe_progress=True)
    env.reset(seed=0)
    strike(env, gap=0.098)
    assert env.step(IDLE)[0][24] == 1.0
    assert env.reset()[0][24] == 0.0


@pytest.mark.parametrize(
    ("torque", "legacy_tip", "legacy_ball"),
    [
        (1.0, (0.33301, 0.12573, -0.17384), (0.76162, -0.09486, -0.27)),
        (2.0, (-0.1229, 0.20811, -0.02848), (0.75405, -0.00223, -0.27)),
        (3.0, (-0.13376, 0.20205, 0.06525), (0.74996, 0.07384, -0.27)),
    ],
)
def test_a_blow_sends_the_ball_where_the_legacy_model_does(
    env, torque, legacy_tip, legacy_ball
):
    # The numbers are those of Gym's model on MuJoCo 3.4, two seconds after the start.
    env.reset(seed=0)
    env.unwrapped._place_goal(0.3, 0.9)
    tip, *_ = place(env, arm=LOW_ARM)
    place(env, arm=LOW_ARM, ball=(tip[0], -0.35))
    for _ in range(40):
        env.step(np.array([torque, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    tip, ball, _ = bodies(env)
    np.testing.assert_allclose(tip, legacy_tip, atol=1e-4)
    np.testing.assert_allclose(ball, legacy_ball, atol=1e-4)


# --- Success ---


@pytest.mark.parametrize(("distance", "is_inside"), [(0.0799, True), (0.0801, False)])
def test_inside_means_within_eight_centimetres_in_the_plane(env, distance, is_inside):
    env.reset(seed=0)
    goal = bodies(env)[2][:2]
    place(env, ball=goal - [0.0, distance])
    *_, info = env.step(IDLE)
    assert info["distance"] == pytest.approx(distance, abs=1e-6)
    assert info["is_success"] is is_inside
    assert info["ever_inside"] is is_inside

    place(env, ball=goal - [0.0, 0.2])
    *_, info = env.step(IDLE)
    assert info["is_success"] is False
    assert info["ever_inside"] is is_inside

    assert env.reset()[1]["ever_inside"] is False


def test_most_balls_launched_at_the_goal_end_inside_and_leave_it_in_its_place(env):
    infos = []
    for seed in range(NUM_EPISODES):
        env.reset(seed=seed)
        pose = env.unwrapped.data.body("goal").xpos.copy()
        infos.append(play(env, seed, speed=2.0)[1])
        np.testing.assert_array_equal(env.unwrapped.data.body("goal").xpos, pose)
    share_inside = np.mean([info["is_success"] for info in infos])
    share_ever = np.mean([info["ever_inside"] for info in infos])
    # The legacy model: 75 % and 92 %; its goal recoils.
    assert share_inside >= 0.75
    assert share_inside <= share_ever
    assert share_ever >= 0.85


@pytest.mark.parametrize("speed", [2.0, 4.0, 6.0])
def test_the_fence_stops_the_ball(env, speed):
    env.reset(seed=0)
    env.unwrapped._place_goal(0.5, 0.2)
    place(env, ball_velocity=(0.0, speed))
    deepest = 0.0
    for _ in range(100):
        env.step(IDLE)
        deepest = max(deepest, bodies(env)[1][1])
    # The ball touches the back panel when its centre is 0.024 behind the goal's.
    assert 0.2 < deepest < 0.2 + 0.075


def test_the_arm_cannot_move_the_goal(env):
    rng = np.random.default_rng(0)
    for seed in range(5):
        env.reset(seed=seed)
        before = bodies(env)[2]
        place(env, arm=LOW_ARM)
        for _ in range(100):
            env.step(rng.uniform(-3.0, 3.0, 7))
        np.testing.assert_array_equal(bodies(env)[2], before)


# --- Floors ---


@pytest.mark.parametrize(("policy", "legacy"), [("idle", -261.0), ("uniform", -467.0)])
def test_trivial_policies_return_what_they_do_in_the_legacy_env(env, policy, legacy):
    rng = np.random.default_rng(0)
    policies = {"idle": lambda: IDLE, "uniform": lambda: rng.uniform(-3.0, 3.0, 7)}
    returns = [play(env, seed, policies[policy])[0] for seed in range(NUM_EPISODES)]
    standard_error = np.std(returns, ddof=1) / math.sqrt(NUM_EPISODES)
    assert abs(np.mean(returns) - legacy) <= 3.0 * standard_error


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
