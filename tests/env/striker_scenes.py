"""Striker's bodies where a test wants them."""

import math

import numpy as np

import rllib_impass  # noqa: F401  (registers the env)

ENV_ID = "rllib_impass/Striker-v0"
IDLE = np.zeros(7, np.float32)
NUM_EPISODES = 100

BODIES = ("tips_arm", "object", "goal")

REST_ARM = np.zeros(7)
# The shoulder turned so far down that the tip is as high above the table as the ball.
LOW_ARM = np.array([0.0, math.asin(0.27 / 0.721), 0.0, 0.0, 0.0, 0.0, 0.0])


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
