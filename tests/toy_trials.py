"""Trials that only count, and trials that never run: for what surrounds a trial."""

import json
import sys
import time
from pathlib import Path

from ray import tune
from ray.tune.experiment import Trial


class Counting(tune.Trainable):
    """Counts up; ``config`` may hold when to fail, and a file at which to wait."""

    def setup(self, config):
        self._count = 0
        self._fails_at = config.get("fails_at")
        self._gate = config.get("gate")

    def step(self):
        time.sleep(0.1)
        while self._gate and self._count == 10 and Path(self._gate).exists():
            time.sleep(0.1)
        self._count += 1
        if self._count == self._fails_at:
            raise ValueError("no more numbers")
        return {"count": self._count}

    def save_checkpoint(self, checkpoint_dir):
        Path(checkpoint_dir, "count.json").write_text(json.dumps(self._count))

    def load_checkpoint(self, checkpoint):
        self._count = json.loads(Path(checkpoint, "count.json").read_text())


def counting_tuner(folder, stop, callbacks, num_samples=1, frequency=0, **config):
    return tune.Tuner(
        Counting,
        param_space=config,
        tune_config=tune.TuneConfig(num_samples=num_samples),
        run_config=tune.RunConfig(
            name="counting",
            storage_path=str(folder),
            stop=stop,
            callbacks=callbacks,
            checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=frequency),
            verbose=0,
        ),
    )


def idle_trials(*parameters):
    """One trial for each dict of parameters, as a callback is given them."""
    return [
        Trial("PPO", trial_id=f"abc12_{i:05d}", stub=True, evaluated_params=p)
        for i, p in enumerate(parameters)
    ]


def main():
    """Counts to ten with two checkpoints, and waits there to be killed."""
    from rich.console import Console

    from rllib_impass.cli.interrupt import (
        CheckpointOnInterrupt,
        checkpoint_on_interrupt,
    )

    folder = sys.argv[1]
    tuner = counting_tuner(
        folder,
        {"count": 12},
        [CheckpointOnInterrupt()],
        frequency=5,
        gate=f"{folder}/gate",
    )
    with checkpoint_on_interrupt(Console()):
        tuner.fit()


if __name__ == "__main__":
    main()
