"""Striker: a seven-joint arm strikes a ball across a table into a goal.

Gym's Striker-v2, which every later collection dropped, brought back on a model of our
own. Without a touch of the goal, episodes equal those of the legacy model (on MuJoCo
3.4) to 1e-6; over seeds 0 to 99 zero actions return -263, uniform ones -475, there and
here. What differs:

* The goal stands still. The legacy goal floats: 40 kg on a free joint, without gravity
  or friction. A ball pushes it up to 9 cm, and from MuJoCo 3.5 on its fence touches the
  table, so that it lifts off and tumbles. Returns hardly notice, because the reward
  keeps the minimum distance (0.1 at 2 m/s), but more balls end inside: 88 of 100
  launched at 2 m/s instead of 77.
* The arm's contact with the fence begins at 0 mm instead of 2 mm (see the model).
* A goal too close to the ball is not redrawn: the legacy ranges never give one.
"""

import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import utils
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from rllib_impass.env.registration import STRIKER_HORIZON
from rllib_impass.ops.striker_reward import StrikerProgress, striker_reward

GOAL_RADIUS = 0.08
STRIKE_POSITIONS = ("alias", "frozen")

_MODEL = Path(__file__).parent / "assets" / "striker.xml"
_NUM_ARM_JOINTS = 7
_BALL_X, _BALL_Y = 0.5, -0.175
_GOAL_LOW, _GOAL_HIGH = (0.15, 0.1), (0.7, 1.0)
_CAMERA = {
    "lookat": np.array([0.27, 0.14, -0.28]),
    "distance": 2.1,
    "azimuth": 116.0,
    "elevation": -35.0,
}


class StrikerEnv(MujocoEnv, utils.EzPickle):
    """The Striker task.

    Observation (23): arm joint angles (7) and velocities (7), positions of the arm's
    tip, the ball and the goal (3 each). Action (7): joint torques in [-3, 3]; beyond
    that the torque saturates and the cost goes on. Reward: that of acting in the state
    before the step, see :func:`rllib_impass.ops.striker_reward.striker_reward`.
    Episodes never terminate; gymnasium cuts them after 100 steps of 0.05 s.

    ``info`` of a step:

    * ``reward_dist``, ``reward_ctrl``, ``reward_near``: before weighting, as in Gym.
    * ``distance``: of the ball from the goal's centre in the plane of the table.
    * ``is_success``: it is at most 0.08 now; at the last step, the episode's outcome.
    * ``ever_inside``: it was at most 0.08 at some step of the episode.

    Args:
        strike_position: from where ``near`` is measured after a strike. "alias": from
            the tip, as published numbers were made, because mujoco-py returned a view
            into the simulator's memory. "frozen": from where the strike happened, as
            the legacy code was meant.
        observe_progress: adds the minimum distance so far, whether the ball was struck
            and the fraction of the 100 steps left to the observation (26 numbers). The
            reward is Markov only with them; that of "frozen" also depends on the place
            of the strike, which stays hidden.
        render_mode: one of gymnasium's modes, or None. Without a display, frames need
            the environment variable ``MUJOCO_GL=egl``.
        width: of a rendered frame, in pixels.
        height: of a rendered frame, in pixels.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"],
        "render_fps": 20,
    }

    def __init__(
        self,
        *,
        strike_position: str = "alias",
        observe_progress: bool = False,
        render_mode: str | None = None,
        width: int = 640,
        height: int = 480,
    ) -> None:
        _check_options(strike_position, observe_progress)
        utils.EzPickle.__init__(
            self,
            strike_position=strike_position,
            observe_progress=observe_progress,
            render_mode=render_mode,
            width=width,
            height=height,
        )
        self._is_frozen = strike_position == "frozen"
        self._observe_progress = observe_progress
        size = 26 if observe_progress else 23
        super().__init__(
            str(_MODEL),
            frame_skip=5,
            observation_space=Box(-np.inf, np.inf, (size,), np.float64),
            render_mode=render_mode,
            width=width,
            height=height,
            default_camera_config=_CAMERA,
        )
        bodies = ("tips_arm", "object", "goal")
        self._body_ids = np.array([self.model.body(name).id for name in bodies])

    def step(
        self, action: ArrayLike
    ) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        """Applies seven torques for 0.05 s.

        Raises:
            ValueError: if the action has another shape or is not finite.
        """
        torques = self._checked(action)
        tip, ball, _ = self._positions.tolist()
        reward = striker_reward(
            tip, ball, torques, self._progress, is_frozen=self._is_frozen
        )
        self._past = self._progress
        self.do_simulation(torques, self.frame_skip)
        self._num_steps += 1
        self._look()
        self._ever_inside |= self._is_inside
        if self.render_mode == "human":
            self.render()
        info = {
            "reward_dist": reward.dist,
            "reward_ctrl": reward.ctrl,
            "reward_near": reward.near,
            **self._get_reset_info(),
        }
        return self._observation(), reward.total, False, False, info

    def reset_model(self) -> NDArray[np.float64]:
        """Puts arm and ball in their places and the goal in a random one."""
        self._start_episode()
        self._place_goal(*self.np_random.uniform(_GOAL_LOW, _GOAL_HIGH))
        qpos, qvel = self.init_qpos.copy(), self.init_qvel.copy()
        qpos[_NUM_ARM_JOINTS:] = _BALL_Y, _BALL_X
        qvel[:_NUM_ARM_JOINTS] = self.np_random.uniform(-0.1, 0.1, _NUM_ARM_JOINTS)
        self.set_state(qpos, qvel)
        return self._observation()

    def set_state(self, qpos: NDArray[np.float64], qvel: NDArray[np.float64]) -> None:
        """Sets joint positions and velocities in place of the current ones."""
        super().set_state(qpos, qvel)
        self._look()

    def _start_episode(self) -> None:
        self._past = StrikerProgress()
        self._ever_inside = False
        self._num_steps = 0

    def _place_goal(self, x: float, y: float) -> None:
        """Moves the goal, which has no joints, and turns its opening to the ball."""
        self.data.mocap_pos[0, :2] = x, y
        # As the legacy code has it, which takes a quaternion's last component for a
        # fraction of pi: the goal turns about two thirds of the way.
        angle = math.atan((_BALL_X - x) / (y - _BALL_Y))
        quaternion = np.array([1.0, 0.0, 0.0, angle / 3.14])
        self.data.mocap_quat[0] = quaternion / np.linalg.norm(quaternion)

    def _look(self) -> None:
        """Reads where things are and what that adds to the episode's past."""
        self._positions = self.data.xpos.take(self._body_ids, axis=0)
        tip, ball, goal = self._positions.tolist()
        self._progress = self._past.after(tip, ball, goal)
        self._distance = math.dist(ball[:2], goal[:2])
        self._is_inside = self._distance <= GOAL_RADIUS

    def _observation(self) -> NDArray[np.float64]:
        parts = [
            self.data.qpos[:_NUM_ARM_JOINTS],
            self.data.qvel[:_NUM_ARM_JOINTS],
            self._positions.ravel(),
        ]
        if self._observe_progress:
            min_distance, strike_position = self._progress
            time_left = max(0.0, 1.0 - self._num_steps / STRIKER_HORIZON)
            parts.append([min_distance, strike_position is not None, time_left])
        return np.concatenate(parts)

    def _get_reset_info(self) -> dict[str, Any]:
        return {
            "distance": self._distance,
            "is_success": self._is_inside,
            "ever_inside": self._ever_inside,
        }

    def _checked(self, action: ArrayLike) -> NDArray[np.float64]:
        torques = np.asarray(action, np.float64)
        if torques.shape != self.action_space.shape:
            raise ValueError(
                f"action must have shape {self.action_space.shape}, one torque per "
                f"joint; got shape {torques.shape}"
            )
        if not np.isfinite(torques).all():
            raise ValueError(
                f"action must be finite, got {torques}: the policy's output is broken "
                "(a NaN in its weights or its observations?)"
            )
        return torques


def _check_options(strike_position: str, observe_progress: bool) -> None:
    if strike_position not in STRIKE_POSITIONS:
        raise ValueError(
            f"strike_position={strike_position!r} is not one of {STRIKE_POSITIONS}"
        )
    if not isinstance(observe_progress, bool):
        raise ValueError(
            f"observe_progress={observe_progress!r} is not a bool: use true or false"
        )
