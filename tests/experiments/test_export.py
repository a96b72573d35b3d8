"""An exported policy acts like its checkpoint, without Ray and without this package."""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch
from ray.rllib.connectors.env_to_module import MeanStdFilter

from configs import serial_config, train_and_save
from rllib_impass.experiments.checkpoint import (
    evaluation_config,
    make_runner,
    read_algorithm,
)
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.export import export_policy

DOCUMENT = Path(__file__).parents[2] / "docs" / "export.md"


def loader():
    (code,) = re.findall(
        r"<!-- loader -->\n```python\n(.*?)```", DOCUMENT.read_text(), flags=re.DOTALL
    )
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    return code


def one_episode(checkpoint):
    """What an EnvRunner's env shows, and what it is sent."""
    saved = read_algorithm(checkpoint)
    runner = make_runner(saved, evaluation_config(saved, seed=None))
    sent = []
    step = runner.env.step
    runner.env.step = lambda actions: sent.append(actions[0]) or step(actions)
    (episode,) = runner.sample(num_episodes=1, explore=False)
    runner.stop()
    return episode.get_observations()[:-1], np.array(sent)


def act_elsewhere(policy, observations, folder):
    """Runs the documented loader where neither Ray nor this package can be imported."""
    np.save(folder / "observations.npy", observations)
    script = """
        import sys
        sys.modules["ray"] = sys.modules["rllib_impass"] = None
        exec(sys.stdin.read())
        observations = np.load("observations.npy")
        actions = [act(o, is_first=i == 0) for i, o in enumerate(observations)]
        np.save("actions.npy", actions)
    """
    policy.rename(folder / "hopper.pt2")
    subprocess.run(
        [sys.executable, "-I", "-W", "ignore", "-c", textwrap.dedent(script)],
        input=loader(),
        cwd=folder,
        text=True,
        timeout=100,
        check=True,
    )
    return np.load(folder / "actions.npy")


@pytest.mark.parametrize("fixture", ["run", "single_state_run", "d4pg_run"])
def test_the_documented_loader_acts_like_the_checkpoint(fixture, request, tmp_path):
    checkpoint = request.getfixturevalue(fixture).checkpoints[-1]
    observations, sent = one_episode(checkpoint)
    assert len(sent) > 5
    assert np.ptp(sent, axis=0).min() > 1e-4
    export_policy(checkpoint, tmp_path / "policy.pt2")
    actions = act_elsewhere(tmp_path / "policy.pt2", observations, tmp_path)
    np.testing.assert_allclose(actions, sent, rtol=0, atol=1e-6)


def test_the_file_says_what_it_is_and_is_not_replaced(run, tmp_path):
    file = tmp_path / "policy.pt2"
    metadata = export_policy(run.checkpoints[0], file)
    texts = {"policy.json": ""}
    torch.export.load(file, extra_files=texts)
    assert json.loads(texts["policy.json"]) == metadata
    assert metadata["algorithm"] == "IMPASS"
    assert metadata["env"] == "Hopper-v5"
    assert metadata["num_stacked_states"] == 4
    assert metadata["observation_shape"] == [11]
    assert metadata["action_high"] == [1.0, 1.0, 1.0]
    assert metadata["num_env_steps"] > 0
    before = file.read_bytes()
    with pytest.raises(UsageError, match="exists"):
        export_policy(run.checkpoints[1], file)
    assert file.read_bytes() == before
    export_policy(run.checkpoints[1], file, force=True)
    assert file.read_bytes() != before
    assert list(tmp_path.iterdir()) == [file]


def test_custom_connectors_are_refused(ray_session, tmp_path):
    config = serial_config("InvertedPendulum-v5").env_runners(
        env_to_module_connector=lambda *args, **kwargs: MeanStdFilter()
    )
    checkpoint = train_and_save(config, tmp_path, 1).checkpoints[0]
    with pytest.raises(UsageError, match=r"IMPASS .* env_to_module_connector is code"):
        export_policy(checkpoint, tmp_path / "policy.pt2")
    assert not (tmp_path / "policy.pt2").exists()
