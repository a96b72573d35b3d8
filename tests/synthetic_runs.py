"""Run folders as Tune leaves them, with made-up numbers."""

import json

import numpy as np

STATE_NAME = "experiment_state-2026-01-02_03-04-05.json"


def result(steps, seconds, evaluation=None, **changes):
    """A row of result.json with the keys that reports read."""
    row = {
        "num_env_steps_sampled_lifetime": steps,
        "time_total_s": 1.25 * seconds,
        "env_runners": {
            "episode_return_mean": 0.8 * (evaluation or 0.0) - 5.0,
            "action_smoothness": 0.6,
        },
        "learners": {"default_policy": {"policy_lag_mean": 1.5}},
        "done": False,
    }
    if evaluation is not None:
        figures = {"episode_return_mean": evaluation, "action_smoothness": 0.1}
        row["evaluation"] = {"env_runners": figures}
    return row | changes


def learning(
    final,
    num_rows=40,
    seed=0,
    speed=5_000.0,
    steps_per_row=25_000,
    rate=4.0,
    noise=0.05,
    start=0.0,
    smoothness=0.1,
    lag=1.5,
):
    """Rows of a run that climbs towards a final return."""
    rng = np.random.default_rng(seed)
    share = np.arange(1, num_rows + 1) / num_rows
    returns = start + (final - start) * (1 - np.exp(-rate * share))
    returns += abs(final - start) * noise * rng.normal(size=num_rows)
    rows = []
    for number, value in enumerate(returns, start=1):
        steps = number * steps_per_row
        seconds = steps / speed * rng.uniform(0.98, 1.02)
        row = result(steps, seconds, float(value), time_training_s=seconds)
        row["evaluation"]["env_runners"]["action_smoothness"] = smoothness * float(
            rng.uniform(0.8, 1.2)
        )
        row["learners"]["default_policy"]["policy_lag_mean"] = lag
        rows.append(row)
    return rows


class Experiment:
    """A folder with its trials; write() when all are there."""

    def __init__(self, folder, run=None):
        self.folder = folder
        folder.mkdir(parents=True)
        self._states = []
        if run is not None:
            record = {"source": {"run": run}, "starts": []}
            (folder / "run.json").write_text(json.dumps(record))

    def add(
        self,
        algorithm,
        env,
        seed,
        rows,
        status="TERMINATED",
        error=None,
        num_env_runners=2,
        num_stacked_states=1,
        label=None,
        is_named=True,
        varied=None,
    ):
        """Adds a trial of `rllib compare`, or, not named, of `rllib train`."""
        number = len(self._states)
        trial = self.folder / f"{algorithm}_{env}_ab12c_{number:05d}_{number}_2026"
        trial.mkdir()
        config = {
            "env": env,
            "seed": seed,
            "num_env_runners": num_env_runners,
            "num_stacked_states": num_stacked_states,
        }
        if is_named:
            about = {"algorithm": algorithm, "label": label or algorithm}
            config["trial"] = about | config
        (trial / "params.json").write_text(json.dumps(config))
        named = {"trial": config["trial"]} if is_named else {}
        lines = [json.dumps({**row, **named, "config": config}) for row in rows]
        (trial / "result.json").write_text("".join(f"{line}\n" for line in lines))
        if error is not None:
            (trial / "error.txt").write_text(error)
        self._states.append(
            {
                "trial_id": f"abc12_{number:05d}",
                "trainable_name": algorithm,
                "status": status,
                "relative_logdir": trial.name,
                "evaluated_params": varied,
            }
        )
        return trial

    def write(self):
        """Writes what Tune notes of all of them."""
        data = {"trial_data": [[json.dumps(s), "{}"] for s in self._states]}
        (self.folder / STATE_NAME).write_text(json.dumps(data))
        return self.folder


CRASH = "Traceback (most recent call last):\n  ...\nRuntimeError: <env> is \x1b[31mgone"
FINALS = {
    "Hopper-v5": {"IMPASS": 2_900, "IMPALANoSS": 1_300, "D4PG": 2_300},
    "Striker-v0": {"IMPASS": -130, "IMPALANoSS": -180, "D4PG": -300},
}
STARTS = {"Hopper-v5": 20, "Striker-v0": -470}


def comparison(folder, num_seeds=3, num_rows=40, envs=tuple(FINALS)):
    """Three algorithms on some envs, of which one run crashed and one never began."""
    made = Experiment(folder)
    rng = np.random.default_rng(1)
    for env in envs:
        for algorithm, final in FINALS[env].items():
            for seed in range(num_seeds):
                start = STARTS[env]
                reached = start + (final - start) * rng.uniform(0.75, 1.1)
                is_ours = algorithm != "D4PG"
                rows = learning(
                    reached,
                    num_rows,
                    seed=17 * seed + len(algorithm),
                    start=start,
                    speed=5_000.0 if is_ours else 900.0,
                    rate=rng.uniform(2, 5),
                    smoothness={"IMPASS": 0.05, "IMPALANoSS": 0.14, "D4PG": 0.2}[
                        algorithm
                    ],
                    lag=1.5 if is_ours else 5.5,
                )
                end = {}
                if (algorithm, seed) == ("D4PG", 1):
                    rows = rows[: num_rows // 2]
                    end = {"status": "ERROR", "error": CRASH}
                if (env, algorithm, seed) == ("Striker-v0", "IMPALANoSS", 2):
                    rows, end = [], {"status": "ERROR", "error": CRASH}
                stack = 4 if algorithm == "IMPASS" else 1
                made.add(algorithm, env, seed, rows, num_stacked_states=stack, **end)
    return made.write()


def actor_study(folder, counts=(1, 2, 4, 8), num_seeds=2):
    """One algorithm with ever more actors, of which the third brings little."""
    made = Experiment(folder)
    for count in counts:
        for seed in range(num_seeds):
            rows = learning(
                2_500,
                30,
                seed=seed + count,
                speed=5_200 * count / (1 + 0.45 * (count - 1)),
                lag=0.8 * count,
            )
            label = f"IMPASS, {count} actor{'' if count == 1 else 's'}"
            made.add(
                "IMPASS",
                "Hopper-v5",
                seed,
                rows,
                num_env_runners=count,
                num_stacked_states=4,
                label=label,
            )
    text = {"text": "2 actors: more than 2 gain less than 5 % on this machine."}
    (folder / "recommendation.json").write_text(json.dumps(text))
    return made.write()
