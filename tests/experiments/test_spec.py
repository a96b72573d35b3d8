"""Experiment files: read strictly, never executed."""

import pytest

import rllib_impass  # noqa: F401
from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.spec import load_experiments

GOOD = """
hop:
  run: IMPASS
  env: Hopper-v5
  stop: {num_env_steps_sampled_lifetime: 1_000}
  checkpoint_config: {checkpoint_at_end: true}
  config:
    lr: 1e-4
    critic_lr: [[0, 1e-3], [1e6, 1E-5]]
    num_env_runners: 3
    model_config: {fcnet_hiddens: [32, 32]}
"""


def load(tmp_path, text):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    return load_experiments(path)


def configs(tmp_path, text):
    return [e.algorithm_config() for e in load(tmp_path, text)]


def test_a_file_becomes_a_config(tmp_path):
    (experiment,) = load(tmp_path, GOOD)
    config = experiment.algorithm_config()
    assert config.lr == 1e-4
    assert config.critic_lr == [[0, 1e-3], [1e6, 1e-5]]
    assert config.num_env_runners == 3
    assert config.env == "Hopper-v5"
    assert config.model_config["fcnet_hiddens"] == [32, 32]
    assert experiment.checkpoint_config == {"checkpoint_at_end": True}


def test_several_experiments_may_share_a_file(tmp_path):
    text = GOOD + GOOD.replace("hop:", "again:").replace("IMPASS", "IMPALANoSS")
    assert [e.run for e in load(tmp_path, text)] == ["IMPASS", "IMPALANoSS"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  stop:", "  stopp:", "did you mean 'stop'"),
        ("  run: IMPASS\n", "", "run is missing"),
        ("  stop: {num_env_steps_sampled_lifetime: 1_000}\n", "", "stop is missing"),
        ("lr: 1e-4", "lrr: 1e-4", "did you mean 'lr'"),
        ("hop:", "../hop:", "no name for a folder"),
        ("hop:", "a..b:", "no name for a folder"),
        ("run: IMPASS", "run: IMPASSE", "no algorithm"),
        ("Hopper-v5", "Hoppper-v5", "cannot be created"),
        ("lr: 1e-4", "lr: !!python/object/apply:os.getcwd []", "python"),
        ("lr: 1e-4", "lr: 1e-4\n    lr: 1e-3", "lr is there twice"),
        ("checkpoint_at_end", "checkpoint_at_ende", "did you mean"),
        ("{fcnet_hiddens", "{fcnet_hidens", "did you mean 'fcnet_hiddens'"),
        ("run:", "run", "file.yaml"),
    ],
)
def test_mistakes_are_named(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(ValueError, match=message):
        configs(tmp_path, GOOD.replace(old, new))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"nothing\.yaml"):
        load_experiments(tmp_path / "nothing.yaml")
