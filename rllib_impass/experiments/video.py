"""Films episodes without a screen."""

import math
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import imageio
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from rllib_impass.experiments.errors import UsageError, one_line

# What a film needs. Hopper makes 125 steps a second, and without a GPU to render a
# frame takes longer than to play the rest of it.
MAX_FPS = 30
RENDERING_HINT = (
    "leave out the video, or set MUJOCO_GL to what this machine has (egl, osmesa, glfw)"
)


class VideoRecorder:
    """Writes the first episodes of a vector env's first env, one MP4 file each.

    Args:
        folder: where the files go; made when the first frame is there.
        name: how their names begin.
        num_episodes: how many to write.

    Attributes:
        files: what has been written.
    """

    def __init__(self, folder: Path, name: str, num_episodes: int) -> None:
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is a file; give a folder for videos")
        self.files: list[Path] = []
        self._folder, self._name = folder, name
        self._num_episodes = num_episodes
        self._writer: Any = None
        self._steps_per_frame = self._num_steps = 0
        if "DISPLAY" not in os.environ:
            # Read when the first frame is rendered: MuJoCo would look for a screen.
            os.environ.setdefault("MUJOCO_GL", "egl")

    def start(self, env: VectorEnv) -> None:
        """Begins a file with an episode's first frame, unless there are enough."""
        self.close()
        if len(self.files) == self._num_episodes:
            return
        frame = _render(env)
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / f"{self._name}_episode_{len(self.files) + 1}.mp4"
        steps_per_s = env.metadata.get("render_fps", MAX_FPS)
        self._steps_per_frame = math.ceil(steps_per_s / MAX_FPS)
        self._num_steps = 0
        self._writer = imageio.get_writer(
            file,
            fps=steps_per_s / self._steps_per_frame,
            codec="libx264",
            pixelformat="yuv420p",
            # What the pixel format needs; imageio would scale to multiples of 16.
            macro_block_size=2,
        )
        self.files.append(file)
        self._writer.append_data(frame)

    def capture(self, env: VectorEnv) -> None:
        """Adds a frame, at the speed of the simulated world."""
        self._num_steps += 1
        if self._writer is not None and self._num_steps % self._steps_per_frame == 0:
            self._writer.append_data(_render(env))

    def close(self) -> None:
        """Finishes the current file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _render(env: VectorEnv) -> NDArray[np.uint8]:
    try:
        frame = env.render()[0]
    except Exception as error:
        # Whatever graphics drivers raise.
        _collect_quietly(error)
        raise UsageError(
            f"no frame could be rendered ({one_line(error)}); {RENDERING_HINT}"
        ) from None
    if not isinstance(frame, np.ndarray):
        raise UsageError(
            "the env renders nothing with render_mode='rgb_array'; leave out the video"
        )
    return frame


def _collect_quietly(error: Exception) -> None:
    """Drops a viewer that was half made, which would print a traceback of its own."""
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        traceback.clear_frames(error.__traceback__)
    finally:
        sys.unraisablehook = hook
