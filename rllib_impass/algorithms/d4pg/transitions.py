"""What a D4PG actor sends: n-step transitions, ready for the replay buffer."""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from rllib_impass.env.trajectory import Trajectory
from rllib_impass.ops.n_step import n_step_transitions
from rllib_impass.ops.state_stack import stack_states
from rllib_impass.utils.replay import Field

Array = NDArray[np.float32]

STATES = "states"
ACTIONS = "actions"
RETURNS = "returns"
DISCOUNTS = "discounts"
NEXT_STATES = "next_states"


@dataclasses.dataclass(frozen=True, slots=True)
class Transitions:
    """N transitions; a plain object, because RLlib would take a tuple apart.

    Attributes:
        columns: arrays of N rows by name: stacked raw ``states`` and ``next_states``,
            ``actions``, n-step ``returns`` and the ``discounts`` of the next state.
        num_env_steps: how many new env steps they were made from.
        weights_version: version of the weights that acted.
        priorities: ``[N]``, by the actor's own critic; None where replay is uniform.
    """

    columns: dict[str, Array]
    num_env_steps: int
    weights_version: int
    priorities: Array | None = None

    def __len__(self) -> int:
        return len(self.columns[RETURNS])


def replay_fields(
    state_shape: tuple[int, ...], action_shape: tuple[int, ...]
) -> dict[str, Field]:
    """What one transition is made of in a replay buffer."""
    return {
        STATES: Field(state_shape),
        ACTIONS: Field(action_shape),
        RETURNS: Field(),
        DISCOUNTS: Field(),
        NEXT_STATES: Field(state_shape),
    }


def to_transitions(trajectory: Trajectory, *, gamma: float, n: int) -> Transitions:
    """Takes every step of a stream exactly once, given n-1 repeated steps."""
    windows = n_step_transitions(
        trajectory.rewards, trajectory.terminated, trajectory.valid, gamma=gamma, n=n
    )
    # Later ones look over the end of this fragment; the next one repeats them.
    starts = windows.complete.copy()
    starts[len(starts) - trajectory.num_repeated :] = False
    t, b = np.nonzero(starts)
    states = stack_states(trajectory.frames, trajectory.ages)
    return Transitions(
        columns={
            STATES: states[t, b],
            ACTIONS: trajectory.actions[t, b],
            RETURNS: windows.returns[t, b],
            DISCOUNTS: windows.discounts[t, b],
            NEXT_STATES: states[windows.next_steps[t, b], b],
        },
        num_env_steps=trajectory.num_valid_steps,
        weights_version=trajectory.weights_version,
    )
