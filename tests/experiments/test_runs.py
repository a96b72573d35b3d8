"""The right checkpoint is found, and what is wrong with one is said in one line."""

import json
import shutil

import pytest

from rllib_impass.experiments.errors import UsageError
from rllib_impass.experiments.runs import find_checkpoint

EVALUATION = "evaluation/env_runners/episode_return_mean"
TRAINING = "env_runners/episode_return_mean"
MODULE_STATE = "learner_group/learner/rl_module/default_policy/module_state.pkl"


def make_trial(folder, run, results):
    """A trial folder whose N-th checkpoint is of iteration N+1.

    Args:
        results: one (training return, evaluation return or None) per iteration.
    """
    for number, checkpoint in enumerate(run.checkpoints):
        shutil.copytree(checkpoint, folder / f"checkpoint_{number:06d}")
    rows = []
    for i, (training, evaluation) in enumerate(results):
        row = {"training_iteration": i + 1}
        row["env_runners"] = {"episode_return_mean": training}
        if evaluation is not None:
            row["evaluation"] = {"env_runners": {"episode_return_mean": evaluation}}
        rows.append(json.dumps(row))
    (folder / "result.json").write_text("\n".join(rows) + '\n{"cut off')
    return folder


@pytest.fixture
def trial(run, tmp_path):
    return make_trial(tmp_path / "trial", run, [(9, 5.0), (8, 7.0), (7, 6.0)])


def test_best_is_by_evaluation(trial):
    best = find_checkpoint(trial)
    assert best.path == trial / "checkpoint_000001"
    assert (best.trial, best.iteration) == (trial, 2)
    assert (best.score, best.score_name) == (7.0, EVALUATION)


def test_the_newest_evaluation_up_to_a_checkpoint_is_its_score(run, tmp_path):
    results = [(1, 5.0), (2, None), (3, float("nan"))]
    trial = make_trial(tmp_path / "trial", run, results)
    assert find_checkpoint(trial, "last").score == 5.0
    # Of equals, the one that was really evaluated.
    assert find_checkpoint(trial).path.name == "checkpoint_000000"


def test_without_evaluation_best_is_by_training_return(run, tmp_path):
    trial = make_trial(tmp_path / "trial", run, [(1, None), (3, None), (2, None)])
    best = find_checkpoint(trial)
    assert (best.path.name, best.score) == ("checkpoint_000001", 3.0)
    assert best.score_name == TRAINING


def test_best_is_over_all_trials(run, tmp_path):
    make_trial(tmp_path / "a", run, [(99, 1.0), (99, 2.0), (99, 3.0)])
    make_trial(tmp_path / "b", run, [(1, 9.0), (1, 2.0), (1, 4.0)])
    make_trial(tmp_path / "c", run, [(99, None)] * 3)
    assert find_checkpoint(tmp_path).path == tmp_path / "b" / "checkpoint_000000"
    assert find_checkpoint(tmp_path, "last").path == tmp_path / "b/checkpoint_000002"
    assert find_checkpoint(tmp_path, 1).score == 2.0


def test_last_and_numbers_are_taken_at_their_word(trial):
    assert find_checkpoint(trial, "last").path.name == "checkpoint_000002"
    assert find_checkpoint(trial, 0).path.name == "checkpoint_000000"


def test_a_checkpoint_may_be_given_itself(trial, run):
    inside = find_checkpoint(trial / "checkpoint_000002")
    assert (inside.path.name, inside.score) == ("checkpoint_000002", 6.0)
    alone = find_checkpoint(str(run.checkpoints[0]))
    assert alone.path == run.checkpoints[0]
    assert (alone.trial, alone.score, alone.score_name) == (None, None, None)
    assert alone.iteration == 1


def test_a_damaged_last_one_does_not_hide_the_best(trial):
    (trial / "checkpoint_000002" / "algorithm_state.pkl").write_bytes(b"")
    assert find_checkpoint(trial).path.name == "checkpoint_000001"
    with pytest.raises(UsageError, match="algorithm_state"):
        find_checkpoint(trial, "last")


@pytest.mark.parametrize(
    ("path", "which", "message"),
    [
        ("nowhere", "best", "does not exist"),
        ("trial/result.json", "best", "is a file"),
        ("empty", "best", "has no checkpoints"),
        ("trial", 7, "no checkpoint 7; there are 0, 1, 2"),
        ("trial", "newest", "'newest' is none of"),
        ("trial/checkpoint_000001", 2, "is a checkpoint itself"),
    ],
)
def test_what_is_not_there_is_said(trial, path, which, message):
    (trial.parent / "empty").mkdir()
    with pytest.raises(UsageError, match=message) as error:
        find_checkpoint(trial.parent / path, which)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "garbage"])
@pytest.mark.parametrize(
    "file",
    [
        "rllib_checkpoint.json",
        "class_and_ctor_args.pkl",
        "algorithm_state.pkl",
        MODULE_STATE,
    ],
)
def test_damage_is_named(run, tmp_path, file, damage):
    checkpoint = shutil.copytree(run.checkpoints[0], tmp_path / "checkpoint_000000")
    target = checkpoint / file
    content = target.read_bytes()
    target.unlink()
    if damage != "missing":
        damaged = {
            "empty": b"",
            "cut": content[: len(content) // 2],
            "garbage": bytes(reversed(content)),
        }
        target.write_bytes(damaged[damage])
    with pytest.raises(UsageError, match="no whole RLlib checkpoint") as error:
        find_checkpoint(checkpoint)
    assert str(checkpoint) in str(error.value)
    assert file in str(error.value)
    assert "\n" not in str(error.value)
