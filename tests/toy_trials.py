"""Trials that only count, and trials that never run: for what surrounds a trial."""

import json
import time
from pathlib import Path

from ray import tune
from ray.tune.experiment import Trial


class Counting(tune.Trainable):
    """Counts up; ``config`` may hold when to fail."""

    def setup(self, config):
        self._count = 0
        self._fails_at = config.get("fails_at")

    def step(self):
        time.sleep(0.1)
        self._count += 1
        if self._count == self._fails_at:
            raise ValueError("no more numbers")
        return {"count": self._count}

    def save_checkpoint(self, checkpoint_dir):
        Path(checkpoint_dir, "count.json").write_text(json.dumps(self._count))

    def load_checkpoint(self, checkpoint):
        self._count = json.loads(Path(checkpoint, "count.json").read_text())


def counting_tuner(folder, stop, callbacks, num_samples=1, **config):
    return tune.Tuner(
        Counting,
        param_space=config,
        tune_config=tune.TuneConfig(num_samples=num_samples),
        run_config=tune.RunConfig(
            name="counting",
            storage_path=str(folder),
            stop=stop,
            callbacks=callbacks,
            verbose=0,
        ),
    )


def idle_trials(*parameters):
    """One trial for each dict of parameters, as a callback is given them."""
    return [
        Trial("PPO", trial_id=f"abc12_{i:05d}", stub=True, evaluated_params=p)
        for i, p in enumerate(parameters)
    ]
