"""Where the learner leaves new weights and the actors fetch them."""

import threading

from ray.rllib.env.env_runner_state_server import EnvRunnerStateServer
from ray.rllib.utils.annotations import override
from ray.rllib.utils.metrics import WEIGHTS_SEQ_NO
from ray.rllib.utils.typing import StateDict


class RunnerStateServer(EnvRunnerStateServer):
    """RLlib's server with two writers: the learner and the driver.

    The learner pushes weights itself, the moment they exist: a detour through the
    driver would age them. The driver pushes merged connector states.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    @override(EnvRunnerStateServer)
    def push(self, state: StateDict) -> None:
        with self._lock:
            # Calls may overtake each other: the actor is threaded.
            if state.get(WEIGHTS_SEQ_NO, 0) >= self.get_version():
                super().push({**(self._state or {}), **state})

    def push_connector_states(self, state: StateDict) -> None:
        """Stores connector states; runners get them along with the next weights."""
        with self._lock:
            self._state = {WEIGHTS_SEQ_NO: 0, **(self._state or {}), **state}
