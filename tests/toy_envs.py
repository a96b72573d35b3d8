"""Environments that make one thing visible each; importable by Ray's workers."""

import os
import time
from pathlib import Path

import gymnasium as gym
import numpy as np


class CountingEnv(gym.Env):
    """Observes (episode, step): every state of a run is different from all others.

    Episodes end after 1, 2, ..., ``longest`` steps in turn; every other one by time
    limit. The reward is the step plus the first action.
    """

    def __init__(self, config=None, *, longest=7, shape=(2,)):
        config = config or {}
        self.longest = config.get("longest", longest)
        self.shape = tuple(config.get("shape", shape))
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, self.shape, np.float64)
        self.action_space = gym.spaces.Box(-2.0, 1.0, (2,), np.float32)
        self.episode = -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            # Distinct copies of a vector env observe distinct states.
            self.offset = seed % 97
        self.episode += 1
        self.t = 0
        return self._observation(), {}

    def step(self, action):
        assert self.action_space.contains(np.asarray(action, np.float32)), action
        self.t += 1
        over = self.t > self.episode % self.longest
        truncated = bool(over and self.episode % 2)
        reward = float(self.t + action[0])
        return self._observation(), reward, over and not truncated, truncated, {}

    def _observation(self):
        values = np.zeros(self.shape)
        values.flat[:2] = self.episode + self.offset / 100.0, self.t
        return values


class FaultyEnv(gym.Env):
    """Does one thing wrong, once or always.

    Args (in ``config``):
        fault: "raise", "raise_in_reset", "nan_observation", "inf_observation" or
            "nan_reward".
        at_step: from which step of the process's life on.
        marker: path of a file; if given, the fault happens only until it exists.
    """

    def __init__(self, config):
        self.config = config
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.config["fault"] == "raise_in_reset" and self._is_faulty():
            raise ConnectionError
        self.t = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        self.t += 1
        self.steps += 1
        observation, reward = np.full(3, self.t, np.float32), 1.0
        if self._is_faulty():
            fault = self.config["fault"]
            if fault == "raise":
                raise ValueError("the simulator exploded")
            if fault == "nan_observation":
                observation[1] = np.nan
            if fault == "inf_observation":
                observation[1] = np.inf
            if fault == "nan_reward":
                reward = np.inf
        return observation, reward, False, self.t >= 20, {}

    def _is_faulty(self):
        if self.steps < self.config.get("at_step", 0):
            return False
        marker = self.config.get("marker")
        if marker is None:
            return True
        if Path(marker).exists():
            return False
        Path(marker).touch()
        return True


class SlowEnv(gym.Env):
    """Takes its time, so that the driver has nothing to do."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, config):
        self.seconds = config["seconds"]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        time.sleep(self.seconds)
        return np.zeros(2, np.float32), 0.0, False, False, {"pid": os.getpid()}


class BrakeEnv(gym.Env):
    """Stop a cart whose velocity no single observation shows.

    A cart starts somewhere with a random velocity; the action accelerates it. Observed
    is the position only. The reward is 1 minus the speed: a policy of single states
    cannot know which way to push, one of stacked states can.
    """

    observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, config=None):
        pass

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = self.np_random.uniform(-1.0, 1.0)
        self.velocity = self.np_random.choice([-1.0, 1.0])
        self.t = 0
        return self._observation(), {}

    def step(self, action):
        self.t += 1
        self.velocity += 0.2 * float(np.clip(action[0], -1.0, 1.0))
        # Kicks keep the task from being over once the cart stands.
        self.velocity += self.np_random.normal(0.0, 0.05)
        self.position += 0.2 * self.velocity
        reward = 1.0 - abs(self.velocity)
        return self._observation(), reward, False, self.t >= 50, {}

    def _observation(self):
        return np.array([self.position], np.float32)


class WideActionsEnv(SlowEnv):
    """Its actions have no bounds."""

    action_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float32)


class DictObservationEnv(SlowEnv):
    """Its observations are no array."""

    observation_space = gym.spaces.Dict({"a": gym.spaces.Box(-1.0, 1.0, (1,))})


class GoalEnv(SlowEnv):
    """Every second episode ends in success; offers no pictures."""

    def __init__(self, config=None):
        self.episode = -1

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.episode = -1
        self.episode += 1
        self.t = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.t += 1
        info = {"is_success": self.t == 3 and self.episode % 2 == 0}
        return np.zeros(2, np.float32), 1.0, self.t == 3, False, info
